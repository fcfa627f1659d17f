/* cpu.h: launches kernels on the CPU. Include it instead of gccl_device.h, or compile with -DGCCL_DEVICE_CPU and include both; link
 * libgccl_cpu (C++14 or later, POSIX threads).
 *
 * A CTA of a launch is a thread of the process, its CUDA threads are fibers of that thread: what CUDA promises about __syncthreads, warp
 * functions, shared memory and groups holds, debuggers and sanitizers see ordinary code, and with ThreadSanitizer a forgotten
 * __syncthreads is a reported race. All waits of gccl_device.h let other threads run, end with the communicator's failure, and may be
 * given a deadline; a loop of the program's own over cuda::atomic_ref lets others run too, but has no deadline.
 *
 *   gccl::cpu::Launch l(grid, block);
 *   l.deadlineNs = 10e9;
 *   ncclResult_t rc = l.run(kernel, argument, …);        // runs it, on this thread's behalf
 *   l.start(kernel, argument, …); …; rc = l.finish();    // the same in two steps
 *
 * Kernels are ordinary functions that return void; arguments are copied. A launch is not ordered with streams: synchronise before. */
#ifndef GCCL_DEVICE_CPU_H
#define GCCL_DEVICE_CPU_H

#ifndef GCCL_DEVICE_CPU
#define GCCL_DEVICE_CPU 1
#endif
#include "../gccl_device.h"

#include <tuple>
#include <utility>

namespace gccl {
namespace cpu {

/* Dynamic shared memory of the calling thread's CTA: what `extern __shared__` is in CUDA. Launch::sharedBytes long, not cleared. */
template <typename T> inline T *dynamicShared() { return static_cast<T *>(gccl_cpu_current->shared); }

/* One launch at a time; not copyable. The destructor finishes what was started. */
struct Launch {
  dim3 grid, block;
  size_t sharedBytes = 0;
  size_t stackBytes = 0;   /* of a CUDA thread; 0: 256 KiB */
  uint64_t deadlineNs = 0; /* after which waits give up; 0: none */
  unsigned resident = 0;   /* CTAs that run at the same time; 0: all, up to 256. CTAs that wait for each other must all be resident. */

  Launch(dim3 grid_, dim3 block_) : grid(grid_), block(block_) {}
  Launch(Launch const &) = delete;
  ~Launch() { (void)finish(); }

  /* Starts the kernel and returns. A launch that is running: ncclInvalidUsage; wrong dimensions: ncclInvalidArgument. */
  template <typename... P, typename... A> ncclResult_t start(void (*kernel)(P...), A &&...args) {
    if (handle_) return ncclInvalidUsage;
    using Call = Bound<P...>;
    gccl_cpu_launch l = gccl_cpu_launch();
    l.size = sizeof l;
    l.grid = {grid.x, grid.y, grid.z};
    l.block = {block.x, block.y, block.z};
    l.shared_bytes = sharedBytes;
    l.stack_bytes = stackBytes;
    l.deadline_ns = deadlineNs;
    l.resident = resident;
    l.body = &Call::run;
    l.arg = new Call{kernel, std::tuple<typename std::decay<P>::type...>(std::forward<A>(args)...)};
    l.release = &Call::drop;
    return (ncclResult_t)gccl_cpu_start(&l, &handle_);
  }

  /* Waits for the end. ncclTimeout: a wait reached the deadline; ncclRemoteError: a communicator failed; ncclInvalidUsage: a check of
   * GCCL_DEVICE_DEBUG or __trap() ended it; error() has the text. ncclSuccess if nothing was started. */
  ncclResult_t finish() {
    if (!handle_) return ncclSuccess;
    void *h = handle_;
    handle_ = nullptr;
    return (ncclResult_t)gccl_cpu_finish(h);
  }

  template <typename... P, typename... A> ncclResult_t run(void (*kernel)(P...), A &&...args) {
    ncclResult_t rc = start(kernel, std::forward<A>(args)...);
    return rc == ncclSuccess ? finish() : rc;
  }

  /* Why the last start or finish of this thread failed. */
  static char const *error() { return gccl_cpu_error(); }

private:
  template <typename... P> struct Bound {
    void (*kernel)(P...);
    std::tuple<typename std::decay<P>::type...> args;
    template <size_t... i> void call(std::index_sequence<i...>) { kernel(std::get<i>(args)...); }
    static void run(void *self) { static_cast<Bound *>(self)->call(std::index_sequence_for<P...>()); }
    static void drop(void *self) { delete static_cast<Bound *>(self); }
  };
  void *handle_ = nullptr;
};

} // namespace cpu
} // namespace gccl

#endif
