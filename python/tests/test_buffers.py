"""What may be passed as a buffer, and what is said about what may not."""

import array
import ctypes

import ml_dtypes
import numpy as np
import pytest

import gccl
from gccl._buffers import resolve
from programs import good


class Pack:
    """A foreign tensor type that only has DLPack."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, stream=None):
        return self.a.__dlpack__()

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


class Cuda:
    """A foreign type with a CUDA array interface; its address is never used."""

    def __init__(self, typestr="<f4", shape=(4, 2), strides=None, readonly=False, mask=None):
        self.__cuda_array_interface__ = {
            "version": 3, "shape": shape, "typestr": typestr, "strides": strides, "data": (4096, readonly), "mask": mask,
        }  # fmt: skip


@pytest.mark.parametrize(
    "buffer, count, code",
    [
        (np.zeros(5, np.float32), 5, gccl.FLOAT32),
        (np.zeros((2, 3), np.int64), 6, gccl.INT64),
        (np.zeros(0, np.uint8), 0, gccl.UINT8),
        (np.zeros(4, ml_dtypes.bfloat16), 4, gccl.BFLOAT16),
        (np.zeros(4, ml_dtypes.float8_e4m3fn), 4, gccl.FLOAT8E4M3),
        (np.zeros(4, ml_dtypes.float8_e5m2), 4, gccl.FLOAT8E5M2),
        (bytearray(7), 7, gccl.UINT8),
        (memoryview(bytearray(8)).cast("i"), 2, gccl.INT32),
        (array.array("d", [1, 2]), 2, gccl.FLOAT64),
        (array.array("l", [1, 2]), 2, gccl.INT64),
        ((ctypes.c_float * 3)(), 3, gccl.FLOAT32),
        (Pack(np.zeros((3, 2), np.float16)), 6, gccl.FLOAT16),
        (gccl.view(np.zeros(6, np.uint16), gccl.BFLOAT16), 6, gccl.BFLOAT16),
        (gccl.view(bytearray(8), gccl.FLOAT8E4M3), 8, gccl.FLOAT8E4M3),
        (Cuda(), 8, gccl.FLOAT32),
        (Cuda("<i8", (3,), (8,)), 3, gccl.INT64),
    ],
    ids=lambda v: type(v).__name__ if not isinstance(v, int) else str(v),
)
def test_resolve(buffer, count, code):
    address, n, found, device, readonly, _ = resolve(buffer)
    assert (n, found, readonly) == (count, code, False)
    assert address or not count
    assert device == (0 if isinstance(buffer, Cuda) else -1)


def test_addresses():
    x = np.arange(4, dtype=np.int32)
    assert resolve(x)[0] == x.ctypes.data == resolve(memoryview(x))[0] == resolve(Pack(x))[0] == resolve(gccl.view(x, gccl.INT32))[0]
    assert resolve(x[1:])[0] == x.ctypes.data + 4


def test_readonly_is_sent_and_not_received(alone):
    out = np.zeros(3, np.uint8)
    alone.allreduce(b"abc", out)
    assert bytes(out) == b"abc"
    locked = np.zeros(3)
    locked.flags.writeable = False
    for call in (
        lambda: alone.allreduce(b"abc"),
        lambda: alone.allreduce(locked),
        lambda: alone.allreduce(np.zeros(3), locked),
        lambda: alone.broadcast(locked),
        lambda: alone.recv(locked, 0),
    ):
        with pytest.raises(gccl.NcclInvalid, match="read-only"):
            call()


@pytest.mark.parametrize(
    "buffer, words",
    [
        (np.zeros((4, 4))[:, 1], "not contiguous"),
        (np.zeros((4, 3), order="F"), "not contiguous"),
        (np.zeros(8)[::2], "not contiguous"),
        (memoryview(bytearray(8))[::2], "not contiguous"),
        (Pack(np.zeros((4, 4))[:, 1]), "not contiguous"),
        (Cuda(strides=(4, 4)), "not contiguous"),
        (np.zeros(3, bool), "view it as uint8"),
        (np.zeros(3, np.complex64), "complex64 has no NCCL type"),
        (np.zeros(3, np.int16), "int16 has no NCCL type"),
        (np.zeros(3, ">f4"), "byte order"),
        (array.array("h", [1]), "no NCCL type"),
        (Cuda("<c8"), "no NCCL type"),
        (Cuda(mask=1), "masked"),
        ([1, 2, 3], "list is no buffer"),
        (3.5, "float is no buffer"),
        (None, "NoneType is no buffer"),
        ("text", "str is no buffer"),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_refused(alone, buffer, words):
    with pytest.raises(gccl.NcclInvalid, match=words):
        alone.allreduce(buffer)


def test_sizes_and_types_must_fit(alone):
    f, g, i = np.zeros(4, np.float32), np.zeros(5, np.float32), np.zeros(4, np.int32)
    for call, words in (
        (lambda: alone.allreduce(f, g), "sendbuf has 4 elements, recvbuf 5"),
        (lambda: alone.allreduce(f, i), "sendbuf is float32, recvbuf int32"),
        (lambda: alone.allgather(f, g), "must be equal"),
        (lambda: alone.reduce_scatter(f, g), "must be equal"),
        (lambda: alone.broadcast(f, g), "must be equal"),
        (lambda: alone.gather(f, g, 0), "must be equal"),
        (lambda: alone.scatter(f, g, 0), "must be equal"),
        (lambda: alone.alltoall(f, g), "must be equal"),
        (lambda: gccl.view(bytearray(3), gccl.FLOAT32), "whole number"),
        (lambda: alone.allreduce(Cuda()), "CUDA memory on a host communicator"),
        (lambda: alone.allreduce(f, stream=object()), "is no stream"),
    ):
        with pytest.raises(gccl.NcclInvalid, match=words):
            call()


def of_two(comm):
    f, g = np.zeros(4, np.float32), np.zeros(6, np.float32)
    for call, words in (
        (lambda: comm.allgather(f, g), r"sendbuf has 4 elements, recvbuf 6: recvbuf must have 2 \(nranks\) times as many"),
        (lambda: comm.reduce_scatter(g, f), r"sendbuf must have 2 \(nranks\) times as many"),
        (lambda: comm.alltoall(np.zeros(3), np.zeros(3)), "3 elements do not divide into 2 equal parts"),
        (lambda: comm.gather(f, g, comm.rank), "nranks"),
        (lambda: comm.scatter(g, f, comm.rank), "nranks"),
    ):
        with pytest.raises(gccl.NcclInvalid, match=words):
            call()
    comm.allreduce(f)  # nothing of that was called, and the ranks still agree


def test_sizes_of_two(ranks):
    ranks(2).run(of_two)


def test_errors_carry_the_librarys_words(alone):
    x = np.zeros(4)
    for call, kind, words in (
        (lambda: alone.broadcast(x, root=3), gccl.NCCLInvalidArgument, "root"),
        (lambda: alone.send(x, 5), gccl.NCCLInvalidArgument, "peer 5"),
        (lambda: alone.allreduce(x, op=99), gccl.NCCLInvalidArgument, "op"),
        (lambda: alone.send(x, 0), gccl.NCCLInvalidUsage, "itself"),
        (lambda: alone.send(x, 0, stream=12345), gccl.NCCLInvalidArgument, "stream"),
        (lambda: alone.register_window(x), gccl.NCCLError, "ncclCommWindowRegister"),
    ):
        with pytest.raises(kind, match=words) as e:
            call()
        assert e.value.code and e.value.text and e.value.call
    assert isinstance(gccl.NCCLTimeout(8, "x", "y"), TimeoutError)


def test_jax_like_objects_are_not_imported():
    """Passing a foreign object imports nothing."""
    out = good("""
        c, = gccl.Communicator.init_all(1, device='host')
        c.allreduce(bytearray(4))
        print('numpy' in sys.modules, 'torch' in sys.modules)
    """)
    assert out.split() == ["False", "False"]


torch = pytest.importorskip("torch", reason="torch is not installed")


def test_torch_tensors(alone):
    for dtype, code in ((torch.float32, gccl.FLOAT32), (torch.bfloat16, gccl.BFLOAT16), (torch.int8, gccl.INT8)):
        t = torch.ones(6, dtype=dtype)
        assert resolve(t)[:4] == (t.data_ptr(), 6, code, -1)
        alone.allreduce(t)
    assert resolve(torch.nn.Parameter(torch.zeros(3)))[1] == 3
    assert resolve(torch.zeros(10)[4:])[1] == 6
    for t, words in (
        (torch.zeros(4, 4).t(), "not contiguous"),
        (torch.zeros(4, dtype=torch.bool), "view it as uint8"),
        (torch.zeros(4, dtype=torch.complex64), "no NCCL type"),
        (torch.zeros(4).to_sparse(), "sparse"),
        (torch.zeros(4, device="meta"), "cannot be reached"),
    ):
        with pytest.raises(gccl.NcclInvalid, match=words):
            resolve(t)
