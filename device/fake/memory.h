/* memory.h: files behind device memory, for memory.c, vmm.c and ipc.c. */
#ifndef GCCL_FAKE_MEMORY_H
#define GCCL_FAKE_MEMORY_H

#include "fake.h"

enum { FAKE_PAGE = 4096, FAKE_GRANULARITY = 2 << 20 };

/* What stands in a page behind the memory of a file, so that another process knows what it was given. */
typedef struct {
  char magic[16]; /* "fake cuda memory" */
  uint64_t bytes, token;
  int device, ipc; /* ipc: of cuMemAlloc */
} fake_trailer;

/* A file of device memory; -1 when there is no room. Counts against the device. */
int fake_file_new(size_t bytes, int device, int ipc, uint64_t *token);
int fake_file_read(int fd, fake_trailer *);
void fake_count(int device, long long bytes);
void *fake_map_file(int fd, size_t bytes, void *at);
uint64_t fake_next_id(void);
fake_range *fake_range_add(enum fake_mem, void *base, size_t bytes, int fd, CUcontext);
size_t fake_round(size_t bytes, size_t unit);
extern fake_range *fake_ranges;

#endif
