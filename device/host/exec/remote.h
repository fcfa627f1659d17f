/* What an executor does for ranks that are reached through the port (device/layout/port.h): beside a store that such a rank waits
 * for, a command. All of it is behind one test of ncclComm.port. */
#ifndef GCCL_HOST_EXEC_REMOTE_H
#define GCCL_HOST_EXEC_REMOTE_H

#include "exec.h"

static inline int gccl_has_remote(const struct ncclComm *c) { return __builtin_expect(c->port != NULL, 0); }
static inline int gccl_is_remote(const struct ncclComm *c, int q) { return __builtin_expect(c->peers[q].remote, 0); }

/* Runs the port; 1 if anything moved. */
static inline int gccl_port_help(const struct ncclComm *c) { return gccl_has_remote(c) && c->port->help(c->port); }

/* Raises a word of a remote rank to a value that only grows. */
void gccl_remote_raise(struct ncclComm *c, int q, enum gccl_place place, uint64_t off, uint64_t value);
/* Puts bytes into a remote rank's memory, and raises a word of its behind them. flags: GCCL_CMD_*. */
void gccl_remote_put(struct ncclComm *c, int q, enum gccl_place place, uint32_t window, uint64_t off, const void *src, uint64_t bytes,
                     enum gccl_place word_place, uint64_t word, uint64_t value, unsigned flags);
/* This rank's record of the operation, to all remote ranks that look at it. */
void gccl_remote_record(gccl_op *x);
/* A mailbox of this rank that a remote rank reads: the sender's announcement (which 0) or the receiver's (1). */
void gccl_remote_post(struct ncclComm *c, int q, int which, const gccl_post *p);
/* The operation has ended here. */
void gccl_remote_done(struct ncclComm *c, uint64_t seq);

#endif
