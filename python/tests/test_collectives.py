"""Every collective and message, every type and operator, against numpy; ranks are processes."""

import ml_dtypes
import numpy as np
import pytest

import gccl

TYPES = [np.dtype(t) for t in ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")]
TYPES += [np.dtype(t) for t in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)]
COUNTS = (0, 1, 17, 1000)
OPS = {
    gccl.SUM: lambda x: x.sum(0),
    gccl.PROD: lambda x: x.prod(0),
    gccl.MAX: lambda x: x.max(0),
    gccl.MIN: lambda x: x.min(0),
}
NRANKS = (1, 2, 3)


def data(rank, count, dtype, seed=0):
    """Small whole numbers, whose sums and products every type holds exactly."""
    return ((np.arange(count) * 7 + rank * 3 + seed) % 3).astype(dtype)


def everyone(nranks, count, dtype):
    return np.stack([data(r, count, np.float64) for r in range(nranks)]) if count else np.zeros((nranks, 0))


def equal(got, want, dtype, what):
    want = np.asarray(want, np.float64).astype(dtype)
    assert got.dtype == dtype
    bad = np.flatnonzero(got.astype(np.float64).ravel() != want.astype(np.float64).ravel())
    assert bad.size == 0, f"{what} {dtype}: element {bad[0]} of {got.size}: got {got.ravel()[bad[0]]}, want {want.ravel()[bad[0]]}"


def reduce_all(comm):
    n = comm.nranks
    for dtype in TYPES:
        for count in COUNTS:
            for op, oracle in OPS.items():
                want, mine = oracle(everyone(n, count, dtype)), data(comm.rank, count, dtype)
                out = np.full(count, 77).astype(dtype)
                comm.allreduce(mine, out, op)
                equal(out, want, dtype, f"allreduce {op!r}")
                equal(mine, data(comm.rank, count, np.float64), dtype, "allreduce: sendbuf was changed")
                comm.allreduce(mine, op=op)
                equal(mine, want, dtype, f"allreduce {op!r} in place")
                for root in range(n):
                    out = np.full(count, 77).astype(dtype) if comm.rank == root else None
                    comm.reduce(data(comm.rank, count, dtype), out, op, root)
                    if comm.rank == root:
                        equal(out, want, dtype, f"reduce {op!r} to {root}")


def average(comm):
    n = comm.nranks
    for dtype in TYPES:
        mine = data(comm.rank, 100, dtype)
        total = everyone(n, 100, dtype).sum(0)
        comm.allreduce(mine, op=gccl.AVG)
        if dtype.kind in "iu":
            equal(mine, total // n, dtype, "average")
        else:  # each input is scaled in the element type: as exact as that is
            error = np.abs(mine.astype(np.float64) - total / n)
            assert (error <= 2 * n * float(ml_dtypes.finfo(dtype).eps)).all(), (dtype, error.max())


def scaled(comm):
    for dtype, code in ((np.dtype("float32"), gccl.FLOAT32), (np.dtype("int64"), gccl.INT64), (np.dtype("float16"), gccl.FLOAT16)):
        op = comm.create_pre_mul_sum(comm.rank + 2, code)
        x = data(comm.rank, 50, dtype)
        comm.allreduce(x, op=op)
        equal(x, sum((r + 2) * data(r, 50, np.float64) for r in range(comm.nranks)), dtype, "pre-mul sum")
        op.close()
    x = np.ones(3, ml_dtypes.bfloat16)
    comm.allreduce(x, op=comm.create_pre_mul_sum(0.5, gccl.BFLOAT16))
    equal(x, np.full(3, comm.nranks / 2), x.dtype, "pre-mul sum")
    x = np.ones(3, ml_dtypes.float8_e5m2)
    comm.allreduce(x, op=comm.create_pre_mul_sum(np.array([2], x.dtype)))
    equal(x, np.full(3, comm.nranks * 2), x.dtype, "pre-mul sum")


def move_all(comm):
    n, me = comm.nranks, comm.rank
    for dtype in TYPES:
        for count in COUNTS:
            each = [data(r, count, dtype) for r in range(n)]
            whole = np.concatenate(each)
            out = np.full(n * count, 77).astype(dtype)
            comm.allgather(each[me], out)
            equal(out, whole, dtype, "allgather")
            out[:] = np.zeros(1, dtype)
            out[me * count : (me + 1) * count] = each[me]
            comm.allgather(out[me * count : (me + 1) * count], out)
            equal(out, whole, dtype, "allgather in place")

            part = np.full(count, 77).astype(dtype)
            sums = everyone(n, n * count, dtype).sum(0)
            comm.reduce_scatter(data(me, n * count, dtype), part)
            equal(part, sums[me * count : (me + 1) * count], dtype, "reduce_scatter")

            out = np.full(n * count, 77).astype(dtype)
            comm.alltoall(data(me, n * count, dtype, 1), out)
            want = [data(r, n * count, np.float64, 1)[me * count : (me + 1) * count] for r in range(n)]
            equal(out, np.concatenate(want), dtype, "alltoall")
            for root in range(n):
                x = data(me, count, dtype)
                comm.broadcast(x, root=root)
                equal(x, data(root, count, np.float64), dtype, f"broadcast from {root} in place")
                x = np.full(count, 77).astype(dtype)
                comm.broadcast(data(me, count, dtype) if me == root else None, x, root)
                equal(x, data(root, count, np.float64), dtype, f"broadcast from {root}")
                out = np.full(n * count, 77).astype(dtype) if me == root else None
                comm.gather(each[me], out, root)
                if me == root:
                    equal(out, whole, dtype, f"gather to {root}")
                comm.scatter(whole if me == root else None, part, root)
                equal(part, each[me], dtype, f"scatter from {root}")


def messages(comm):
    n, me = comm.nranks, comm.rank
    for dtype in TYPES:
        for count in COUNTS:
            got = np.full(count, 77).astype(dtype)
            with gccl.group():
                comm.send(data(me, count, dtype), (me + 1) % n)
                comm.recv(got, (me + n - 1) % n)
            equal(got, data((me + n - 1) % n, count, np.float64), dtype, "ring")
    if n > 1:  # outside a group, in order
        x = np.empty(3)
        for k in range(4):
            if me == 0:
                comm.send(np.full(3, k), 1)
            elif me == 1:
                comm.recv(x.view(np.int64), 0)
                assert (x.view(np.int64) == k).all()


def large(comm):
    """Past what travels in one piece."""
    x = np.arange(1_000_003, dtype=np.float64) + comm.rank
    comm.allreduce(x)
    n = comm.nranks
    np.testing.assert_array_equal(x, n * np.arange(1_000_003) + n * (n - 1) / 2)


@pytest.mark.parametrize("nranks", NRANKS)
@pytest.mark.parametrize("what", [reduce_all, average, scaled, move_all, messages, large], ids=lambda f: f.__name__)
def test_against_numpy(ranks, what, nranks):
    ranks(nranks).run(what)


def shaped(comm):
    x = np.ones((3, 4, 5), np.float32)
    comm.allreduce(x)
    assert x.shape == (3, 4, 5) and (x == comm.nranks).all()
    y = np.ones((), np.int32)
    comm.allreduce(y)
    assert y == comm.nranks


def test_shapes_stay(ranks):
    ranks(2).run(shaped)


def none_is_all(comm):
    """nccl4py: without a root, reduce is allreduce and gather is allgather."""
    x, y = np.ones(4), np.empty(4 * comm.nranks)
    comm.reduce(x, x, gccl.SUM)
    assert (x == comm.nranks).all()
    comm.gather(x, y)
    assert (y == comm.nranks).all()


def test_no_root(ranks):
    ranks(2).run(none_is_all)
