"""PyTorch's symmetric memory over windows of NCCL, whose peers' addresses its kernels get by the device API: python3 symmetric.py NRANKS

What torch 2.11 has: nccl_put, nccl_get, nccl_put_with_signal, nccl_wait_for_signal, and its own kernels (one-shot, two-shot) on the same
addresses. Those that need multicast are not called. Every result is compared with plain torch."""

import os
import sys

os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

import common


def same(name, got, want):
    torch.cuda.synchronize()
    if not torch.equal(got.cpu(), want.cpu()):
        raise SystemExit(f"{name}: rank {dist.get_rank()}: want {want.flatten()[:4].tolist()}, got {got.flatten()[:4].tolist()}")
    if dist.get_rank() == 0:
        print("ok", name, flush=True)


def meet():
    """All ranks have done what they queued."""
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()


kept = []  # torch frees memory without deregistering its window


def window(count, dtype, group):
    """A tensor in a window, its handle, and zeroed signals: torch's barriers count on zeros."""
    x = symm_mem.empty(count, dtype=dtype, device=common.device())
    kept.append(x)
    handle = symm_mem.rendezvous(x, group=group)
    handle.get_signal_pad(dist.get_rank()).zero_()
    meet()
    return x, handle


def one_sided(rank, n, group):
    right, left, ops = (rank + 1) % n, (rank - 1) % n, torch.ops.symm_mem
    for count in (1, 17, 1024, 100003):
        x, handle = window(count, torch.float32, group)
        x.fill_(rank)
        meet()
        if rank == 1:
            ops.nccl_put_with_signal(x, 5, 0)
        if rank == 0:
            ops.nccl_wait_for_signal(x, 5)
            same(f"nccl_put_with_signal {count}", x, torch.ones(count))
        meet()
        x.fill_(10 + rank)
        meet()
        if rank == 1:
            ops.nccl_put(x, 0)
        meet()
        if rank == 0:
            same(f"nccl_put {count}", x, torch.full((count,), 11.0))
        x.fill_(20 + rank)
        meet()
        if rank == 0:
            ops.nccl_get(x, 1)
            same(f"nccl_get {count}", x, torch.full((count,), 21.0))
        meet()
        # Every peer's memory by its address, as torch's own kernels and Triton's have it.
        x.fill_(30 + rank)
        meet()
        for p in range(n):
            same(f"get_buffer {count} of {p}", handle.get_buffer(p, (count,), torch.float32).clone(), torch.full((count,), 30.0 + p))
        meet()
        if n > 1:
            handle.get_buffer(right, (count,), torch.float32).copy_(torch.full((count,), 40.0 + rank, device=common.device()))
        meet()
        same(f"stores to get_buffer {count}", x, torch.full((count,), 40.0 + left))
        meet()


def reductions(rank, n, group):
    for dtype in (torch.float32, torch.bfloat16):
        for count in (1024, 65536):
            whole = torch.arange(count, dtype=torch.float32).remainder(7)
            x, _ = window(count, dtype, group)
            mine = (whole + rank).to(dtype).to(common.device())
            plain = mine.clone()
            dist.all_reduce(plain)  # small whole numbers: exact in every type
            x.copy_(mine)
            meet()
            same(f"one_shot_all_reduce {dtype} {count}", torch.ops.symm_mem.one_shot_all_reduce(x, "sum", group), plain)
            meet()
            torch.ops.symm_mem.two_shot_all_reduce_(x, "sum", group)
            same(f"two_shot_all_reduce_ {dtype} {count}", x, plain)
            meet()


def main(rank, n):
    if rank == 0:
        print("library:", common.library(), "torch", torch.__version__, flush=True)
    symm_mem.set_backend("NCCL")
    dist.all_reduce(torch.ones(1, device=common.device()))  # the communicator, which torch makes late
    group = dist.group.WORLD.group_name
    which = sys.argv[2] if len(sys.argv) > 2 else "one_sided"
    {"one_sided": one_sided, "reductions": reductions}[which](rank, n, group)


common.start(int(sys.argv[1]), main, deadline=60)
