"""The package on CUDA buffers over the stand-in for the driver (device/fake), which make test-python builds: ranks are processes."""

import os
import subprocess
import sys

import programs
import pytest

BUILD = os.environ.get("GCCL_LIB_DIR") or os.path.join(os.path.dirname(os.path.dirname(programs.HERE)), "build", "lib")
DRIVER, KERNELS = os.path.join(BUILD, "test", "libcuda.so.1"), os.path.join(BUILD, "libgccl_kernels_cpu.so")
NEEDED = [f for f in (DRIVER, KERNELS) if not os.path.exists(f)]


def over_stand_in(**more):
    return programs.environment(GCCL_CUDA_LIBRARY=DRIVER, GCCL_FAKE_KERNELS=KERNELS, LD_LIBRARY_PATH=os.path.dirname(DRIVER), **more)


def test_stand_in_is_built():
    assert not NEEDED, f"missing {NEEDED}: make build kernels-cpu"


@pytest.mark.parametrize("n", [1, 2, 3])
def test_package(n):
    p = subprocess.run([sys.executable, os.path.join(programs.HERE, "cuda_ranks.py"), str(n), "driver"], capture_output=True, text=True, timeout=200, env=over_stand_in())
    assert p.returncode == 0 and p.stdout.count(": ok") == 7 + n, p.stdout + p.stderr


def test_a_device_array_is_a_buffer():
    """gccl.empty on CUDA: its interface, lifetime, and what it cannot say."""
    p = subprocess.run(
        [sys.executable, "-c", """
import gccl
from cuda_driver import DriverStore
store = DriverStore()
x = gccl.empty((3, 4), "float64", device="cuda")
i = x.__cuda_array_interface__
assert i["shape"] == (3, 4) and i["typestr"] == "<f8" and i["data"][0] % 256 == 0, i
(comm,) = gccl.Communicator.init_all(1, device="cuda")
comm.allreduce(x, stream=store.driver.stream)
store.driver.synchronize()
try:
    gccl.empty(3, "bfloat16", device="cuda")
except gccl.NcclInvalid as e:
    assert "gccl.torch.empty" in str(e)
else:
    raise AssertionError("bfloat16 has no typestr")
raw = gccl.mem_alloc(100, device="cuda")
comm.allreduce(raw, stream=store.driver.stream)
store.driver.synchronize()
gccl.mem_free(raw)
comm.destroy()
print("ok")
"""], capture_output=True, text=True, timeout=100, env=over_stand_in())  # fmt: skip
    assert p.returncode == 0 and p.stdout.strip() == "ok", p.stdout + p.stderr
