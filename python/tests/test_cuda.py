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


def test_gccl_top_knows_how_far_streams_are(tmp_path):
    """A stream that waits for a word between two runs of operations, each longer than what the library keeps of their ends."""
    p = subprocess.run(
        [sys.executable, "-c", """
import ctypes, json, os, subprocess, sys
import gccl
from cuda_driver import DriverStore
store = DriverStore()
d, stream = store.driver, store.driver.stream
comms = gccl.Communicator.init_all([0, 0], device="cuda")
xs = [store.put([1.0] * 100, "float32") for _ in comms]

def operations(n):
    for _ in range(n):
        with gccl.group():
            for c, x in zip(comms, xs):
                c.allreduce(x, op=gccl.MAX, stream=stream)

def look():
    out = subprocess.run([sys.argv[1], "--once", "--json", "--interval", "10ms"], capture_output=True, text=True, check=True).stdout
    (c,) = json.loads(out)["communicators"]
    return [(m["finished"], m["running"], m.get("what", ""), m["straggler"]) for m in c["members"]]

word = ctypes.c_void_p()
d("cuMemHostAlloc", ctypes.byref(word), ctypes.c_size_t(4), 1)
value = ctypes.c_uint32.from_address(word.value)
value.value = 0
try:
    operations(40)
    d("cuStreamWaitValue32_v2", ctypes.c_void_p(stream), ctypes.c_uint64(word.value), 1, 0)
    operations(60)
    for finished, running, what, straggler in look():
        assert 32 <= finished <= 40 and running == finished + 1 and not straggler, (finished, running)
    operations(10)
    assert all(32 <= f <= 40 for f, _, _, _ in look()), look()
    value.value = 1
    d.synchronize()
    assert look() == [(110, 0, "", False)] * 2, look()
    operations(3)
    d.synchronize()
    d("cuStreamWaitValue32_v2", ctypes.c_void_p(stream), ctypes.c_uint64(word.value), 2, 0)
    operations(2)
    assert look() == [(113, 114, "all-reduce of 100 float32", False)] * 2, look()
    value.value = 2
    d.synchronize()
finally:
    value.value = 2  # else the end would wait for the stream
for c in comms:
    c.destroy()
print("ok")
""", os.path.join(os.path.dirname(BUILD), "bin", "gccl-top")], capture_output=True, text=True, timeout=100, env=over_stand_in(GCCL_TOP_DIR=str(tmp_path / "top")))  # fmt: skip
    assert p.returncode == 0 and p.stdout.strip() == "ok", p.stdout + p.stderr
