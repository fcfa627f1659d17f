"""A kernel that communicates: an all-reduce by loads and stores, launched by Python.

The text of the kernel is the same for CUDA and for the CPU (docs/device-api.md).

    python3 06_device_api.py          kernels on the CPU, compiled by g++
    python3 06_device_api.py cuda     on GPUs, compiled by CuPy
"""

import ctypes
import os
import subprocess
import sys
import tempfile

import numpy as np

import gccl

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CTAS, THREADS, COUNT = 4, 64, 10000

KERNEL = r"""
extern "C" __global__ void all_reduce(ncclWindow_t in, ncclWindow_t out, unsigned long long count, ncclDevComm comm) {
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x);
  barrier.sync(ncclCoopCta(), cuda::memory_order_acquire);  // all inputs are complete
  unsigned long long thread = threadIdx.x + blockDim.x * (blockIdx.x + gridDim.x * comm.rank);
  for (unsigned long long i = thread; i < count; i += blockDim.x * gridDim.x * comm.nRanks) {
    float sum = 0;
    for (int peer = 0; peer < comm.lsaSize; peer++) sum += static_cast<float *>(ncclGetLsaPointer(in, 0, peer))[i];
    for (int peer = 0; peer < comm.lsaSize; peer++) static_cast<float *>(ncclGetLsaPointer(out, 0, peer))[i] = sum;
  }
  barrier.sync(ncclCoopCta(), cuda::memory_order_release);  // all outputs are complete
}
"""

LAUNCHER = r"""
extern "C" const char *launch(unsigned ctas, unsigned threads, ncclWindow_t in, ncclWindow_t out, size_t count, const ncclDevComm *comm) {
  gccl::cpu::Launch launch(ctas, threads);
  return launch.run(all_reduce, in, out, count, *comm) == ncclSuccess ? "" : launch.error();
}
"""


def on_the_cpu(folder):
    """Compiles the kernel into a library; returns what launches it."""
    library, source = os.path.join(folder, "kernel.so"), os.path.join(folder, "kernel.cc")
    with open(source, "w") as f:
        f.write("#include <gccl_device/cpu.h>\n" + KERNEL + LAUNCHER)
    lib = os.path.dirname(gccl.library_info().path)
    options = ["-std=c++14", "-O2", "-shared", "-fPIC", "-I", os.path.join(ROOT, "include"), "-L", lib, "-Wl,-rpath," + lib]
    subprocess.run(["g++", source, "-o", library, *options, "-lgccl_cpu", "-lgccl"], check=True)
    function = ctypes.CDLL(library).launch
    pointer = ctypes.c_void_p
    function.argtypes = [ctypes.c_uint, ctypes.c_uint, pointer, pointer, ctypes.c_size_t, pointer]
    function.restype = ctypes.c_char_p

    def launch(a, b, dev):
        text = function(CTAS, THREADS, a.handle, b.handle, COUNT, dev.ptr)  # returns when the kernel has ended
        if text:
            raise RuntimeError(text.decode())

    return launch


def on_the_gpu():
    """Compiles the kernel by NVRTC; returns what launches it on CuPy's current stream."""
    import cupy

    options = ("-std=c++17", "-default-device", "-I" + os.path.join(ROOT, "include"))
    module = cupy.RawModule(code="#include <gccl_device.h>\n" + KERNEL, options=options)
    kernel = module.get_function("all_reduce")

    def launch(a, b, dev):
        windows = np.uint64(a.handle), np.uint64(b.handle)
        kernel((CTAS,), (THREADS,), (*windows, np.uint64(COUNT), dev.as_argument()))
        cupy.cuda.get_current_stream().synchronize()

    return launch


def program(comm, device):
    n, me = comm.nranks, comm.rank
    with tempfile.TemporaryDirectory() as folder:
        launch = on_the_gpu() if device == "cuda" else on_the_cpu(folder)
    x, y = gccl.empty(COUNT, device=device), gccl.empty(COUNT, device=device)
    if device == "cuda":
        import cupy

        x, y = cupy.asarray(x), cupy.asarray(y)
    with comm.register_window(x) as a, comm.register_window(y) as b:
        # One barrier for each CTA: its partners are the CTAs with the same number on the other ranks.
        with comm.create_dev_comm(gccl.NCCLDevCommRequirements(lsa_barrier_count=CTAS)) as dev:
            x[:] = me + 1
            launch(a, b, dev)
            assert bool((y == n * (n + 1) / 2).all()), y
        comm.allreduce(x)  # nobody looks at the windows any more
    return "ok"


if __name__ == "__main__":
    where = sys.argv[1] if len(sys.argv) > 1 else "host"
    print(gccl.spawn(program, 2, [where], device=where))
