"""Device communicators in host mode: kernels on the CPU that Python launches."""

import ctypes

import device_kernels
import numpy as np
import pytest

import gccl
from gccl import _device


def test_layouts():
    ours = [ctypes.sizeof(c) for c in (_device.CDevComm, _device.CRequirements, _device.CResource, _device.CProperties)]
    ours += [_device.CDevComm.lsa_size.offset, _device.CRequirements.gin_connection_type.offset, _device.CRequirements.gin_va_signals_required.offset]
    ours += [_device.CResource.out_counter.offset, _device.CProperties.railed_gin_type.offset]
    assert ours == device_kernels.library().sizes


def all_reduce(comm):
    kernels, n, me = device_kernels.library(), comm.nranks, comm.rank
    x, y = gccl.empty(5000, device="host"), gccl.zeros(5000)
    with comm.register_window(x) as a, comm.register_window(y) as b, comm.create_dev_comm(gccl.NCCLDevCommRequirements(lsa_barrier_count=3)) as dev:
        assert (dev.dev_comm.rank, dev.dev_comm.nranks, dev.dev_comm.lsa_rank, dev.dev_comm.lsa_size) == (me, n, me, n)
        for k, (kernel, pointer) in enumerate(((kernels.by_value, dev.ptr), (kernels.by_pointer, dev.device_ptr)) * 2):
            x[:] = np.arange(5000) % 100 + me + k
            kernel(3, a.handle, b.handle, 5000, pointer)
            assert (y == n * (np.arange(5000) % 100 + k) + n * (n - 1) / 2).all()
            comm.allreduce(np.zeros(1))
        argument = dev.as_argument()
        assert argument.size == 1 and argument.tobytes() == bytes(dev) == ctypes.string_at(dev.device_ptr, len(bytes(dev)))
        kernels.by_value(3, a.handle, b.handle, 5000, argument.ctypes.data)
        x[me] = 7 + me
        comm.allreduce(np.zeros(1))
        for p in range(n):
            assert a.lsa_ptr(p, 4 * p) == a.peer_ptr(p, 4 * p)
            assert ctypes.c_float.from_address(a.lsa_ptr(p, 4 * p)).value == 7 + p
        comm.allreduce(np.zeros(1))
    assert not dev.is_valid
    dev.close()
    for use in (lambda: dev.ptr, lambda: dev.device_ptr, lambda: bytes(dev)):
        with pytest.raises(gccl.NcclInvalid, match="was closed"):
            use()


def signals(comm):
    kernels, n = device_kernels.library(), comm.nranks
    assert comm.gin_type != gccl.NcclGinType.NONE and comm.n_lsa_teams == 1
    own = gccl.DevResource(1000, gin_signal_count=1)
    asked = gccl.NCCLDevCommRequirements(gin_connection_type=gccl.NcclGinConnectionType.FULL, gin_signal_count=2, gin_context_count=1, resources=[own])
    x = gccl.zeros(n, "int64")
    with comm.register_window(x) as w, comm.create_dev_comm(asked) as dev:
        assert own.gin_signal_start == 2 and own.handle > 0
        kernels.gin_gather(w.handle, own.gin_signal_start, dev.ptr)
        assert x.tolist() == [100 + p for p in range(n)]
        comm.allreduce(np.zeros(1))


def lines(comm):
    kernels, n, me = device_kernels.library(), comm.nranks, comm.rank
    first, a2a = gccl.DevResource(64), gccl.LLA2ARequirement(1, n)
    with comm.create_dev_comm(gccl.NCCLDevCommRequirements(resources=[first, a2a])) as dev:
        assert a2a.handle > first.handle and len(bytes(a2a)) == 8
        for k in range(3):
            send, recv = np.array([me + p / 10 + k for p in range(n)]), np.zeros(n)
            kernels.ll_exchange(send.ctypes.data, recv.ctypes.data, bytes(a2a), dev.ptr)
            assert recv.tolist() == [p + me / 10 + k for p in range(n)]


def refused(comm):
    with pytest.raises(gccl.NCCLInvalidArgument, match="lsaMultimem"):
        comm.create_dev_comm(gccl.NCCLDevCommRequirements(lsa_multimem=True))
    with pytest.raises(gccl.NCCLInvalidArgument, match="bufferAlign"):
        comm.create_dev_comm(gccl.NCCLDevCommRequirements(resources=[gccl.DevResource(8, 3)]))
    if comm.nranks > 1:
        with pytest.raises(gccl.NCCLInvalidUsage, match="other requirements"):
            comm.create_dev_comm(gccl.NCCLDevCommRequirements(lsa_barrier_count=1 + 100 * comm.rank))
    child = comm.split(0)
    dev = child.create_dev_comm()
    assert dev.is_valid
    child.destroy()
    assert not dev.is_valid
    dev.close()
    with pytest.raises(gccl.NCCLInvalidArgument, match="destroyed"):
        child.create_dev_comm()


def nonblocking(comm):
    child = comm.split(0, config=gccl.NCCLConfig(blocking=False))
    child.wait(60)
    own = gccl.DevResource(100)
    dev = child.create_dev_comm(gccl.NCCLDevCommRequirements(lsa_barrier_count=1, resources=[own]))
    child.wait(60)
    assert dev.is_valid and dev.dev_comm.nranks == comm.nranks and own.handle > 0
    dev.close()
    child.destroy()


@pytest.mark.parametrize("nranks", (1, 2, 3))
@pytest.mark.parametrize("what", [all_reduce, signals, lines, refused, nonblocking], ids=lambda f: f.__name__)
def test_device(ranks, what, nranks):
    ranks(nranks).run(what)


def test_in_a_group():
    comms = gccl.Communicator.init_all(2, device="host")
    with gccl.group():
        devs = [c.create_dev_comm(gccl.NCCLDevCommRequirements(lsa_barrier_count=1)) for c in comms]
        with pytest.raises(gccl.NcclInvalid, match="still being made"):
            devs[0].ptr
    assert all(d.is_valid and d.dev_comm.rank == r for r, d in enumerate(devs))
    with pytest.raises(ValueError), gccl.group():
        dropped = comms[0].create_dev_comm()
        raise ValueError
    assert not dropped.is_valid
    for c in comms:
        c.destroy()


def test_properties(alone):
    p = alone.query_properties()
    assert (p.rank, p.nranks, p.cuda_dev, p.n_lsa_teams) == (0, 1, -1, 1) and p.device_api_support and not p.multimem_support
    assert alone.device_api_support and alone.host_rma_support and alone.nvml_dev == -1 and "gin_type=<NcclGinType" in repr(p)


def test_words(alone):
    with pytest.raises(TypeError, match="lsa_barrier_count"):
        gccl.NCCLDevCommRequirements(lsa_barriers=1)
    with pytest.raises(TypeError, match="dict"):
        alone.create_dev_comm({"lsa_barrier_count": 1})
    with pytest.raises(gccl.NcclInvalid, match="slots"):
        gccl.LLA2ARequirement(0, 4)
    assert repr(gccl.NCCLDevCommRequirements(gin_signal_count=2)) == "NCCLDevCommRequirements(gin_signal_count=2)"
