"""Every collective of torch.distributed with the backend nccl, or gccl: python3 collectives.py NRANKS [BACKEND]"""

import sys

import torch
import torch.distributed as dist

import common


def same(name, got, want):
    if not torch.equal(got.cpu(), want.cpu()):
        raise SystemExit(f"{name}: rank {dist.get_rank()}: want {want.flatten()[:4].tolist()}, got {got.flatten()[:4].tolist()}")


def main(rank, n):
    if rank == 0:
        print("library:", common.library(), flush=True)
    dev = common.device()
    total = n * (n + 1) // 2
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8, torch.int8):
        for count in (1, 17, 1000, 100003):
            # Whole numbers, so that sums are exact in every type and the bits are known.
            x = torch.full((count,), rank + 1, dtype=dtype, device=dev)
            dist.all_reduce(x)
            same(f"all_reduce {dtype} {count}", x, torch.full((count,), total, dtype=dtype))
    for op, want in ((dist.ReduceOp.MAX, n), (dist.ReduceOp.MIN, 1), (dist.ReduceOp.PRODUCT, torch.prod(torch.arange(1, n + 1)).item())):
        x = torch.full((333,), float(rank + 1), device=dev)
        dist.all_reduce(x, op=op)
        same(f"all_reduce {op}", x, torch.full((333,), float(want)))
    x = torch.full((64,), float(rank * 2), device=dev)
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    same("all_reduce AVG", x, torch.full((64,), float(n - 1)))

    for root in range(n):
        x = torch.full((1001,), rank, device=dev)
        dist.broadcast(x, root)
        same(f"broadcast from {root}", x, torch.full((1001,), root))
        x = torch.full((1001,), rank + 1, device=dev)
        dist.reduce(x, root)
        if rank == root:
            same(f"reduce to {root}", x, torch.full((1001,), total))
        parts = [torch.empty(50, device=dev) for _ in range(n)] if rank == root else None
        dist.gather(torch.full((50,), float(rank), device=dev), parts, dst=root)
        if rank == root:
            for p in range(n):
                same(f"gather to {root}", parts[p], torch.full((50,), float(p)))
        out = torch.empty(50, device=dev)
        dist.scatter(out, [torch.full((50,), float(p + root), device=dev) for p in range(n)] if rank == root else None, src=root)
        same(f"scatter from {root}", out, torch.full((50,), float(rank + root)))

    out = torch.empty(n * 700, device=dev)
    dist.all_gather_into_tensor(out, torch.full((700,), float(rank), device=dev))
    same("all_gather_into_tensor", out, torch.arange(n).repeat_interleave(700).float())
    parts = [torch.empty(30, device=dev) for _ in range(n)]
    dist.all_gather(parts, torch.full((30,), float(rank), device=dev))
    for p in range(n):
        same("all_gather", parts[p], torch.full((30,), float(p)))
    out = torch.empty(700, device=dev)
    dist.reduce_scatter_tensor(out, torch.arange(n, device=dev).repeat_interleave(700).float())
    same("reduce_scatter_tensor", out, torch.full((700,), float(rank * n)))
    out = torch.empty(n * 90, device=dev)
    dist.all_to_all_single(out, torch.arange(n, device=dev).repeat_interleave(90).float() * 100 + rank)
    same("all_to_all_single", out, torch.arange(n).repeat_interleave(90).float() + rank * 100)
    outs = [torch.empty(11 + p, device=dev) for p in range(n)]
    dist.all_to_all(outs, [torch.full((11 + rank,), float(rank * 100 + p), device=dev) for p in range(n)])
    for p in range(n):
        same("all_to_all of different sizes", outs[p], torch.full((11 + p,), float(p * 100 + rank)))

    if n > 1:
        right, left = (rank + 1) % n, (rank - 1) % n
        for count in (1, 1000, 1 << 20):
            send, recv = torch.full((count,), float(rank), device=dev), torch.empty(count, device=dev)
            ops = [dist.P2POp(dist.isend, send, right), dist.P2POp(dist.irecv, recv, left)]
            for work in dist.batch_isend_irecv(ops):
                work.wait()
            same(f"batch_isend_irecv {count}", recv, torch.full((count,), float(left)))
        x = torch.full((9,), float(rank), device=dev)
        if rank == 0:
            dist.send(x, 1)
        if rank == 1:
            dist.recv(x, 0)
            same("send and recv", x, torch.zeros(9))

    # A second group, asynchronous work, and work on another stream.
    evens = dist.new_group(list(range(0, n, 2)))
    if rank % 2 == 0:
        x = torch.ones(123, device=dev)
        dist.all_reduce(x, group=evens)
        same("all_reduce of the even ranks", x, torch.full((123,), float((n + 1) // 2)))
    works, xs = [], [torch.full((5000,), float(rank + k), device=dev) for k in range(20)]
    for x in xs:
        works.append(dist.all_reduce(x, async_op=True))
    for k, (work, x) in enumerate(zip(works, xs)):
        work.wait()
        same("asynchronous all_reduce", x, torch.full((5000,), float(n * k + n * (n - 1) // 2)))
    if dev.type == "cuda":
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            x = torch.full((777,), float(rank), device=dev)
            dist.all_reduce(x)
        side.synchronize()
        same("all_reduce on a stream", x, torch.full((777,), float(n * (n - 1) // 2)))
    dist.barrier()


common.start(int(sys.argv[1]), main, (sys.argv[2:] or ["nccl"])[0])
