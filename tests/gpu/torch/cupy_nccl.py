"""cupy's binding of NCCL: one process with one rank, then two processes: python3 cupy_nccl.py"""

import multiprocessing
import sys


def rank_main(n, uid, rank, queue):
    import cupy
    from cupy.cuda import nccl

    cupy.cuda.Device(0).use()
    comm = nccl.NcclCommunicator(n, uid, rank)
    x = cupy.full(1000, rank + 1, dtype=cupy.float32)
    y = cupy.zeros_like(x)
    comm.allReduce(x.data.ptr, y.data.ptr, x.size, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, cupy.cuda.Stream.null.ptr)
    cupy.cuda.Stream.null.synchronize()
    ok = bool((y == n * (n + 1) // 2).all())
    comm.destroy()
    queue.put((rank, ok, nccl.get_version()))


def run(n):
    ctx = multiprocessing.get_context("spawn")
    parent = ctx.Queue()
    from cupy.cuda import nccl

    uid = nccl.get_unique_id()
    ranks = [ctx.Process(target=rank_main, args=(n, uid, r, parent)) for r in range(n)]
    for p in ranks:
        p.start()
    bad = 0
    for _ in range(n):
        rank, ok, version = parent.get(timeout=60)
        print(f"{n} ranks: rank {rank}: {'ok' if ok else 'wrong sum'}, version {version}", flush=True)
        bad |= not ok
    for p in ranks:
        p.join(30)
    return bad


if __name__ == "__main__":
    sys.exit(int(run(1) or run(2)))
