/* Accessors of struct ncclComm for the Go core: cgo cannot read atomic fields, and the order of stores is C's business. */
#ifndef GCCL_HOST_CONTROL_H
#define GCCL_HOST_CONTROL_H

#include "../../layout/comm.h"

typedef struct ncclComm ncclComm_s;

typedef struct {
  uint64_t core;
  int32_t rank, nranks, lsa_size;
  uint8_t blocking, check, no_onesided, one_process, crowded, device_api, copies, spin;
  uint32_t spin_ns, yield_ns;
  uint64_t late_ns;
} gccl_ctl_identity;

ncclComm_s *gccl_ctl_new(void);
int gccl_ctl_arrays(ncclComm_s *, int32_t nranks);
void gccl_ctl_identity_set(ncclComm_s *, const gccl_ctl_identity *);
void gccl_ctl_geometry(ncclComm_s *, uint64_t eager, uint64_t stage, uint64_t device);
uint64_t gccl_ctl_area_size(uint32_t nranks, uint64_t eager, uint64_t stage, uint64_t device);
void gccl_ctl_peer(ncclComm_s *, int32_t rank, uintptr_t area, uintptr_t arena, int same);
void gccl_ctl_remote(ncclComm_s *, int32_t rank, uintptr_t mirror);
void gccl_ctl_sleepers(ncclComm_s *, int32_t rank);
void gccl_ctl_port(ncclComm_s *, gccl_port *);
void gccl_ctl_gin_type(ncclComm_s *, int32_t type);
void gccl_ctl_self(ncclComm_s *, uintptr_t area, uintptr_t arena, uint64_t arena_size);
void gccl_ctl_area_init(ncclComm_s *);
int gccl_ctl_area_check(ncclComm_s *, int32_t rank, uint32_t *magic, uint32_t *version, int32_t *has);
void gccl_ctl_proof_write(ncclComm_s *, int32_t to, uint64_t pattern);
uint64_t gccl_ctl_proof_take(ncclComm_s *, int32_t from);
void gccl_ctl_left_mark(ncclComm_s *, int32_t to);
int gccl_ctl_left_read(uintptr_t area, uint64_t signals, int32_t from);
void gccl_ctl_release(ncclComm_s *);

uint32_t gccl_ctl_state(const ncclComm_s *);
void gccl_ctl_state_set(ncclComm_s *, uint32_t);
int gccl_ctl_state_swap(ncclComm_s *, uint32_t from, uint32_t to);
int gccl_ctl_latch(ncclComm_s *, int32_t rc, const char *text, int32_t len);
int32_t gccl_ctl_error(const ncclComm_s *);
uint32_t gccl_ctl_abort(const ncclComm_s *);
void gccl_ctl_abort_set(ncclComm_s *, uint32_t);
int32_t gccl_ctl_async(const ncclComm_s *);
void gccl_ctl_async_set(ncclComm_s *, int32_t);
void gccl_ctl_unlatch(ncclComm_s *);
void gccl_ctl_wake(ncclComm_s *);
int gccl_ctl_unfinished(const ncclComm_s *);
int gccl_ctl_in_flight(const ncclComm_s *, uint64_t *seq);
uint64_t gccl_ctl_finished(const ncclComm_s *, int32_t rank);
int gccl_ctl_joined(const ncclComm_s *, int32_t rank, uint64_t seq, char *call, int32_t max);
void gccl_ctl_counted(const ncclComm_s *, uint64_t *calls, uint64_t *bytes);
int gccl_ctl_took_part(const ncclComm_s *, int32_t rank, uint64_t seq);

int gccl_ctl_plan_add(ncclComm_s *, uint32_t coll, uint32_t cls, uint32_t root, const void *block, uint64_t size, uint64_t *kept);
const gccl_lowered *gccl_ctl_plan_find(const ncclComm_s *, uint32_t coll, uint32_t cls, uint32_t root);
void gccl_ctl_limit(ncclComm_s *, uint32_t coll, uint32_t cls, uint64_t limit);

gccl_window *gccl_ctl_window_new(ncclComm_s *, uint32_t number, uintptr_t user, uint64_t size, uint64_t offset, int32_t flags);
void gccl_ctl_window_peer(gccl_window *, int32_t rank, uint64_t offset, uint64_t size);
void gccl_ctl_window_flat(gccl_window *, uintptr_t flat, uint64_t stride);
void gccl_ctl_window_resource(gccl_window *);
void gccl_ctl_window_keys(gccl_window *, void *keys);
int gccl_ctl_window_publish(ncclComm_s *, gccl_window *);
int gccl_ctl_window_drop(ncclComm_s *, gccl_window *);
gccl_window *gccl_ctl_window_at(ncclComm_s *, int32_t slot);
void gccl_ctl_window_free(gccl_window *);

#endif
