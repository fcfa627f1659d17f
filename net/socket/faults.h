#ifndef GCCL_SOCKET_FAULTS_H
#define GCCL_SOCKET_FAULTS_H

#include "socket.h"

enum {
  GCCL_FAULT_SHORT,   /* less is sent or received than could be */
  GCCL_FAULT_EINTR,   /* a call is interrupted */
  GCCL_FAULT_EAGAIN,  /* the kernel takes or has nothing */
  GCCL_FAULT_BREAK,   /* a stream is reset */
  GCCL_FAULT_CLOSE,   /* a stream ends */
  GCCL_FAULT_CORRUPT, /* a head is sent with a wrong bit */
  GCCL_FAULTS
};

typedef struct {
  uint64_t seed;
  uint32_t per_100000[GCCL_FAULTS]; /* calls */
  int64_t breaks;                   /* BREAK, CLOSE and CORRUPT together happen at most so often */
} gccl_socket_faults;

void *gccl_socket_faults_set(gccl_net_ep *, const gccl_socket_faults *);
void gccl_socket_faults_allow(void *, int64_t breaks);
uint64_t gccl_socket_faults_count(void *, int kind);
void gccl_socket_faults_free(void *);

#endif
