"""Memory of the library, windows, put and signal."""

import gc

import ml_dtypes
import numpy as np
import pytest

import gccl


def test_empty():
    for dtype in ("float32", np.int64, np.dtype("float16"), gccl.UINT8, ml_dtypes.bfloat16, "float8_e4m3fn"):
        a = gccl.empty((3, 4), dtype, device="host")
        assert a.shape == (3, 4) and a.flags.writeable and a.ctypes.data % 4096 == 0
        a[...] = np.ones((3, 4)).astype(a.dtype)
        assert (a.astype(np.float64) == 1).all()
    assert gccl.empty(5, device="host").shape == (5,)
    assert (gccl.zeros((2, 2), "int32") == 0).all()
    with pytest.raises(gccl.NcclInvalid, match="no NCCL type"):
        gccl.empty(3, "complex64", device="host")
    with pytest.raises(gccl.NcclInvalid, match="'host'"):
        gccl.empty(3, device="tpu")


def test_memory_is_freed_with_the_last_array():
    a = gccl.empty(1 << 20, "uint8", device="host")
    part = a[100:200]
    part[:] = 7
    del a
    gc.collect()
    assert (part == 7).all()
    address = part.ctypes.data - 100
    del part
    gc.collect()
    again = [gccl.empty(1 << 20, "uint8", device="host") for _ in range(2)]
    assert address in [x.ctypes.data for x in again]


def test_raw_memory():
    b = gccl.mem_alloc(4096, device="host")
    assert b.resolve()[1] == 4096
    gccl.mem_free(b)
    with pytest.raises(ValueError, match="mem_alloc"):
        gccl.mem_free(b)


def collectives_on_windows(comm):
    x = gccl.empty(4096, "float32", device="host")
    with comm.register_window(x) as window:
        assert window.is_valid and window.user_ptr == x.ctypes.data and window.size == x.nbytes
        for k in range(3):
            x[:] = comm.rank + k
            comm.allreduce(x)
            assert (x == sum(r + k for r in range(comm.nranks))).all()
        comm.allreduce(np.zeros(1))  # nobody uses it any more
    assert not window.is_valid


def put_to_the_right(comm):
    n, me = comm.nranks, comm.rank
    right, left = (me + 1) % n, (me + n - 1) % n
    x = gccl.zeros((n, 64), "int64")
    window = comm.register_window(x)
    token = np.zeros(1)
    for k in range(5):
        x[me] = 1000 * k + me
        comm.put_signal(x[me], right, window, me * 64 * 8)
        comm.wait_signal(gccl.WaitSignalDesc(left))
        assert (x[left] == 1000 * k + left).all()
        comm.allreduce(token)
    comm.signal(right)
    comm.signal(right)
    comm.wait_signal([gccl.WaitSignalDesc(left, 2)])
    comm.allreduce(token)
    window.close()
    window.close()


def windows_go_with_their_communicator(comm):
    child = comm.split(0)
    window = child.register_window(gccl.empty(1000, device="host"))
    child.destroy()
    assert not window.is_valid
    window.close()


def registered_buffers(comm):
    x = np.ones(1000)
    with comm.register_buffer(x):
        comm.allreduce(x)
    assert (x == comm.nranks).all()


@pytest.mark.parametrize("nranks", (2, 3))
@pytest.mark.parametrize(
    "what",
    [collectives_on_windows, put_to_the_right, windows_go_with_their_communicator, registered_buffers],
    ids=lambda f: f.__name__,
)
def test_windows(ranks, what, nranks):
    ranks(nranks).run(what)


def test_window_in_a_group():
    comms = gccl.Communicator.init_all(2, device="host")
    x = [gccl.zeros(512, "int64") for _ in comms]
    with gccl.group():
        windows = [c.register_window(a) for c, a in zip(comms, x)]
    assert all(w.is_valid for w in windows)
    x[0][:] = 5
    with gccl.group():
        comms[0].put_signal(x[0][:8], 1, windows[0], 64)
        comms[1].wait_signal(gccl.WaitSignalDesc(0))
    assert x[1].tolist() == [0] * 8 + [5] * 8 + [0] * 496
    for c in comms:
        c.destroy()


def test_ordinary_memory_is_no_window(alone):
    with pytest.raises(gccl.NCCLError, match="ncclMemAlloc"):
        alone.register_window(np.zeros(1000))
