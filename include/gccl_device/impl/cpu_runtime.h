/* cpu_runtime.h: what kernels on the CPU ask of libgccl_cpu (device/cpu): who a thread is, waiting, barriers, exchange, traps.
 *
 * A CTA is one operating-system thread; its CUDA threads are fibers of it, which run one at a time and change only inside these
 * functions. So nothing here needs a lock within a CTA. */
#ifndef GCCL_DEVICE_IMPL_CPU_RUNTIME_H
#define GCCL_DEVICE_IMPL_CPU_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct gccl_cpu_vec {
  unsigned x, y, z;
};

/* The CUDA thread that runs: what the built-in variables show. The runtime writes it; kernels only read, except pulse. */
struct gccl_cpu_thread {
  struct gccl_cpu_vec thread, block, block_size, grid_size;
  uint32_t rank;  /* in the CTA, x fastest */
  uint32_t pulse; /* atomic loads since the last change of fiber */
  void *shared;   /* the dynamic shared memory of the CTA, as many bytes as the launch asked for */
};

/* NULL outside of a kernel. */
extern __thread struct gccl_cpu_thread *gccl_cpu_current;

/* Lets the other threads of the CTA run, and other operating-system threads when all of the CTA have nothing to do. */
void gccl_cpu_yield(void);

/* One turn of a wait: yields, and says whether to give up (1), because *abort is not 0 (abort may be NULL), the launch has failed or its
 * deadline is over. The rest describes the wait: if it never ends, the launch's error text says
 * "WHAT OBJECT of rank PEER: waited for WANT, has SEEN"; peer -1 is none. what must stay valid until the launch ends. */
int gccl_cpu_wait(const uint32_t *abort, const char *what, uint64_t object, int peer, uint64_t want, uint64_t seen);

/* Waits for count threads of the CTA at barrier id, 0 … 15; count 0 means all that have not returned. Returns how many of them gave a
 * value other than 0, in bits 0 … 30, and whether all did in bit 31. */
uint32_t gccl_cpu_barrier(unsigned id, unsigned count, int value);

/* Waits for the lanes of mask in this thread's warp; lanes that have returned do not count. */
void gccl_cpu_warp_sync(uint32_t mask);

/* Every lane of mask offers size bytes (up to 16) and gets those of lane source of the warp: its own where that lane offers none. */
void gccl_cpu_exchange(uint32_t mask, const void *mine, void *theirs, unsigned size, unsigned source);

/* The lanes of mask for which value is not 0. */
uint32_t gccl_cpu_ballot(uint32_t mask, int value);

/* Ends the launch with ncclInvalidUsage and this text: no thread of it runs on past its next wait. Does not return in a kernel; outside
 * of one it prints the text and aborts the process. */
#ifdef __cplusplus
[[noreturn]]
#else
_Noreturn
#endif
void gccl_cpu_trap(const char *text);

/* Nanoseconds of a monotonic clock: what clock64() counts. */
uint64_t gccl_cpu_clock(void);

/* A launch. The runtime calls body(arg) once for each thread. */
struct gccl_cpu_launch {
  size_t size; /* of this structure */
  struct gccl_cpu_vec grid, block;
  size_t shared_bytes;  /* dynamic shared memory of a CTA, aligned to 128; not cleared */
  size_t stack_bytes;   /* of a thread; 0: 256 KiB */
  uint64_t deadline_ns; /* after which waits give up; 0: none */
  unsigned resident;    /* CTAs that run at the same time; 0: all, up to 256 */
  void (*body)(void *arg);
  void *arg;
  void (*release)(void *arg); /* called once when the launch has ended; may be NULL */
};

/* Starts a launch and returns at once. The result is an ncclResult_t as an int; *handle is for gccl_cpu_finish. A launch that cannot
 * start returns ncclInvalidArgument (dimensions) or ncclSystemError (threads, memory), and release has been called. */
int gccl_cpu_start(const struct gccl_cpu_launch *launch, void **handle);

/* Waits for the end of a launch and frees the handle. ncclSuccess; ncclTimeout after the deadline, ncclRemoteError after an abort word,
 * ncclInvalidUsage after a trap, with a text in gccl_cpu_error. */
int gccl_cpu_finish(void *handle);

/* What went wrong in the last start or finish of this thread that failed. Never NULL. */
const char *gccl_cpu_error(void);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
