"""What ranks of torch.distributed do in the tests of the backend; in a module of its own, so that processes can import it."""

import datetime
import os
import tempfile
import traceback

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

DEVICE = os.environ.get("GCCL_TEST_DEVICE", "cpu")  # "cuda": every tensor is there, and all ranks share the GPU
MODERN = hasattr(dist, "all_gather_into_tensor") and int(torch.__version__.split(".")[0]) >= 2


def _join(rank, n, path, seconds):
    import gccl.torch  # noqa: F401  registers the backend

    torch.set_num_threads(1)
    if DEVICE != "cpu":
        torch.set_default_device(DEVICE)
    dist.init_process_group("gccl", init_method=path if "://" in path else f"file://{path}", rank=rank, world_size=n, timeout=datetime.timedelta(seconds=seconds))


def serve(n, rank, pipe, path):
    """A rank of the fixture torch_ranks."""
    _join(rank, n, path, 100)
    while True:
        try:
            function, args = pipe.recv()
        except EOFError:
            break
        try:
            pipe.send((True, function(rank, n, *args)))
        except BaseException:
            pipe.send((False, traceback.format_exc()))
    dist.destroy_process_group()


def _rank(rank, function, n, path, args, seconds):
    _join(rank, n, path, seconds)
    function(rank, n, *args)
    dist.destroy_process_group()


def launch(function, n, *args, seconds=60, meet=None):
    """function(rank, n, *args) on n fresh processes of a process group, which meet at a URL; raises the first failure."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_rank, (function, n, meet or os.path.join(folder, "rendezvous"), args, seconds), nprocs=n)


def same(got, want, what):
    if not torch.equal(got, want):
        raise AssertionError(f"{what}: rank {dist.get_rank()}: want {want.flatten()[:4].tolist()}, got {got.flatten()[:4].tolist()}")


REDUCED = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8, torch.int8)
MOVED = REDUCED + (torch.int16, torch.bool, torch.complex64)


def value(rank, shape, dtype):
    """Whole numbers that every type holds exactly."""
    return ((torch.arange(torch.Size(shape).numel()) + rank) % 3).reshape(shape).to(dtype)


def reductions(rank, n):
    ops = {dist.ReduceOp.SUM: torch.sum, dist.ReduceOp.PRODUCT: torch.prod, dist.ReduceOp.MAX: torch.amax, dist.ReduceOp.MIN: torch.amin}
    for dtype in REDUCED:
        for shape in ((17,), (10, 100), ()):
            everyone = torch.stack([value(r, shape, torch.float64) for r in range(n)])
            for op, oracle in ops.items():
                want = oracle(everyone, 0).to(dtype)
                x = value(rank, shape, dtype)
                dist.all_reduce(x, op=op)
                same(x, want, f"all_reduce {op} {dtype}")
                for root in range(n):
                    x = value(rank, shape, dtype)
                    dist.reduce(x, root, op=op)
                    if rank == root:
                        same(x, want, f"reduce {op} {dtype}")
            parts = [value(rank + p, shape, dtype) for p in range(n)]
            out = torch.empty(shape, dtype=dtype)
            dist.reduce_scatter(out, parts)
            want = sum(value(r + rank, shape, torch.float64) for r in range(n)).to(dtype)
            same(out, want, f"reduce_scatter {dtype}")
    x = torch.full((64,), float(rank * 2))
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    same(x, torch.full((64,), float(n - 1)), "average")
    b = torch.tensor([rank == 0, True, False])
    dist.all_reduce(b, op=dist.ReduceOp.SUM)
    same(b, torch.tensor([True, True, False]), "bool sum")
    c = torch.full((3,), complex(rank, 1))
    dist.all_reduce(c)
    same(c, torch.full((3,), complex(n * (n - 1) / 2, n)), "complex sum")
    t = torch.arange(12.0).reshape(3, 4).t() + rank  # not contiguous
    dist.all_reduce(t)
    same(t, torch.arange(12.0).reshape(3, 4).t() * n + n * (n - 1) / 2, "transposed")


def moves(rank, n):
    for dtype in MOVED:
        for shape in ((5,), (3, 7)):
            for root in range(n):
                x = value(rank, shape, dtype)
                dist.broadcast(x, root)
                same(x, value(root, shape, dtype), f"broadcast {dtype}")
                parts = [torch.empty(shape, dtype=dtype) for _ in range(n)] if rank == root else None
                dist.gather(value(rank, shape, dtype), parts, dst=root)
                for p in range(n) if rank == root else ():
                    same(parts[p], value(p, shape, dtype), f"gather {dtype}")
                out = torch.empty(shape, dtype=dtype)
                dist.scatter(out, [value(p + root, shape, dtype) for p in range(n)] if rank == root else None, src=root)
                same(out, value(rank + root, shape, dtype), f"scatter {dtype}")
            parts = [torch.empty(shape, dtype=dtype) for _ in range(n)]
            dist.all_gather(parts, value(rank, shape, dtype))
            for p in range(n):
                same(parts[p], value(p, shape, dtype), f"all_gather {dtype}")
            outs = [torch.empty(shape, dtype=dtype) for _ in range(n)]
            dist.all_to_all(outs, [value(10 * rank + p, shape, dtype) for p in range(n)])
            for p in range(n):
                same(outs[p], value(10 * p + rank, shape, dtype), f"all_to_all {dtype}")
        out = torch.empty((n * 6,), dtype=dtype)
        dist.all_to_all_single(out, value(rank, (n * 6,), dtype))
        want = torch.cat([value(p, (n * 6,), dtype)[rank * 6 : rank * 6 + 6] for p in range(n)])
        same(out, want, f"all_to_all_single {dtype}")
    sizes = [[(s + r) % 3 for r in range(n)] for s in range(n)]  # rows from s to r, some of them none
    source = torch.cat([torch.full((sizes[rank][r], 2), 10.0 * rank + r) for r in range(n)])
    out = torch.empty((sum(sizes[s][rank] for s in range(n)), 2))
    dist.all_to_all_single(out, source, [sizes[s][rank] for s in range(n)], sizes[rank])
    same(out, torch.cat([torch.full((sizes[s][rank], 2), 10.0 * s + rank) for s in range(n)]), "all_to_all_single with splits")
    parts = [torch.empty(p + 1) for p in range(n)]  # every rank's own size
    dist.all_gather(parts, torch.full((rank + 1,), float(rank)))
    for p in range(n):
        same(parts[p], torch.full((p + 1,), float(p)), "uneven all_gather")
    gather = dist.all_gather_into_tensor if MODERN else dist._all_gather_base
    scatter = dist.reduce_scatter_tensor if MODERN else dist._reduce_scatter_base
    out = torch.empty(n * 50)
    gather(out, torch.full((50,), float(rank)))
    same(out, torch.arange(n).repeat_interleave(50).float(), "all_gather_into_tensor")
    part = torch.empty(50)
    scatter(part, torch.arange(n).repeat_interleave(50).float())
    same(part, torch.full((50,), float(rank * n)), "reduce_scatter_tensor")


def messages(rank, n):
    """Sends and receives in any order, without groups: both send first, large and small, several at once."""
    right, left = (rank + 1) % n, (rank - 1) % n
    for count in (1, 100, 300000):
        x, y = torch.full((count,), float(rank)), torch.empty(count)
        works = [dist.isend(x, right), dist.irecv(y, left)]
        for w in works:
            w.wait()
        same(y, torch.full((count,), float(left)), "isend and irecv")
        y = torch.empty(count)
        for w in dist.batch_isend_irecv([dist.P2POp(dist.irecv, y, left), dist.P2POp(dist.isend, x, right)]):
            w.wait()
        same(y, torch.full((count,), float(left)), "batch_isend_irecv")
    z = torch.empty(3)
    if rank == 0:
        for k in range(5):
            dist.send(torch.full((3,), float(k)), 1)
    elif rank == 1:
        for k in range(5):
            dist.recv(z, 0)
            same(z, torch.full((3,), float(k)), "order")
    w = dist.isend(torch.ones(3), right)  # nobody waits for it before the barrier
    dist.barrier()
    dist.recv(z, left)
    w.wait()


def asynchronous(rank, n):
    xs = [torch.full((1000,), float(rank + k)) for k in range(20)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    for k, w in reversed(list(enumerate(works))):  # waited for in another order
        w.wait()
        if DEVICE == "cuda":
            torch.cuda.synchronize()  # waiting orders the stream only
        assert w.is_completed() and (dist.get_backend() != "gccl" or w.is_success())  # nccl has deprecated it
        same(xs[k], torch.full((1000,), float(n * k + n * (n - 1) / 2)), "asynchronous")
    x = torch.ones(5)
    done = dist.all_reduce(x, async_op=True).get_future().then(lambda f: f.value()[0] * 2)
    same(done.wait(), torch.full((5,), 2.0 * n), "future")
    x = torch.ones(5)
    w = dist.all_reduce(x, async_op=True)  # nobody waits: the channel's thread does it
    while not w.is_completed():
        pass
    same(w.result()[0], torch.full((5,), float(n)), "result")
    dist.barrier(async_op=True).wait()


def objects(rank, n):
    everything = [None] * n
    dist.all_gather_object(everything, {"rank": rank, "text": "x" * rank * 1000})
    assert [o["rank"] for o in everything] == list(range(n))
    one = [f"from {rank}", rank]
    dist.broadcast_object_list(one, src=n - 1)
    assert one == [f"from {n - 1}", n - 1]
    got = [None] * n if rank == 0 else None
    dist.gather_object(rank, got, dst=0)
    assert rank or got == list(range(n))
    out = [None]
    dist.scatter_object_list(out, [f"to {r}" for r in range(n)] if rank == 0 else None, src=0)
    assert out == [f"to {rank}"]


def groups(rank, n):
    """Subgroups, made by all ranks, used by their members."""
    even = dist.new_group([r for r in range(n) if r % 2 == 0])
    pair = dist.new_group([0, n - 1])
    x = torch.ones(10)
    if rank % 2 == 0:
        dist.all_reduce(x, group=even)
        same(x, torch.full((10,), float((n + 1) // 2)), "even ranks")
    if rank in (0, n - 1):
        y = torch.full((3,), float(rank))
        dist.broadcast(y, n - 1, group=pair)
        same(y, torch.full((3,), float(n - 1)), "pair")
    dist.barrier()
    assert dist.get_backend() in ("gccl", "nccl")


def coalesced(rank, n):
    xs = [torch.full((5,), float(rank)), torch.full((7,), float(rank + 1))]
    dist.all_reduce_coalesced(xs)
    same(xs[1], torch.full((7,), n * (n + 1) / 2), "all_reduce_coalesced")
    if not MODERN:
        return
    with dist._coalescing_manager():
        ys = [torch.ones(4), torch.ones(6)]
        for y in ys:
            dist.all_reduce(y)
    same(ys[1], torch.full((6,), float(n)), "coalesced all_reduce")
    outs = [torch.empty(n * 3), torch.empty(n * 2)]
    with dist._coalescing_manager(async_ops=True) as cm:
        for o in outs:
            dist.all_gather_into_tensor(o, torch.full((o.numel() // n,), float(rank)))
    cm.wait()
    same(outs[0], torch.arange(n).repeat_interleave(3).float(), "coalesced all_gather")
    with dist._coalescing_manager():
        parts = [torch.empty(3), torch.empty(2)]
        for p in parts:
            dist.reduce_scatter_tensor(p, torch.ones(n * p.numel()))
    same(parts[0], torch.full((3,), float(n)), "coalesced reduce_scatter")


def refused(rank, n):
    for call, words in (
        (lambda: dist.all_reduce(torch.ones(3, dtype=torch.int32), op=dist.ReduceOp.BXOR), "BXOR"),
        (lambda: dist.all_reduce(torch.ones(3, dtype=torch.int16)), "int16"),
        (lambda: dist.all_reduce(torch.ones(3).to_sparse()), "sparse"),
        (lambda: dist.recv(torch.ones(3)), "source"),
        (lambda: dist.send(torch.ones(3), (rank + 1) % n, tag=4), "tag"),
    ):
        try:
            call()
        except Exception as e:
            assert words in str(e), e
        else:
            raise AssertionError(f"no error about {words}")
    x = torch.ones(2)
    dist.all_reduce(x)
    same(x, torch.full((2,), float(n)), "afterwards")


def model():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))


def train(rank, n, path, steps=30):
    """A small model with DDP; its losses and last weights go to path."""
    from torch.nn.parallel import DistributedDataParallel

    m = DistributedDataParallel(model(), bucket_cap_mb=0.01)  # several buckets
    optimizer = torch.optim.SGD(m.parameters(), lr=0.05)
    g = torch.Generator(device="cpu").manual_seed(rank)
    losses = []
    for _ in range(steps):
        x = torch.randn(8, 16, generator=g, device="cpu").to(DEVICE)
        loss = ((m(x) - torch.sin(x.sum(1, keepdim=True))) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(total.item() / n)
    weights = torch.cat([p.detach().reshape(-1) for p in m.parameters()])
    highest = weights.clone()
    dist.all_reduce(highest, op=dist.ReduceOp.MAX)
    same(highest, weights, "weights of the ranks")
    if rank == 0:
        torch.save((losses, weights), path)


def late(rank, n):
    """Rank 0 waits for a rank that does not come."""
    if rank == 0:
        dist.all_reduce(torch.ones(1))  # the communicator is there
        try:
            dist.all_reduce(torch.ones(100000))
        except (TimeoutError, RuntimeError) as e:
            assert "not done within 3" in str(e), e
        else:
            raise AssertionError("no timeout")
    else:
        import time

        dist.all_reduce(torch.ones(1))
        time.sleep(6)
        os._exit(0)  # the group has failed here too
