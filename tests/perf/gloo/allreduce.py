"""The Gloo peer: float32 sum all-reduce over TCP between two processes, called through torch.distributed, each call timed on its own.

allreduce.py SPEC...    SPEC is bytes:warmup:iterations

Prints one JSON line a SPEC, each figure the mean over ranks of that rank's figure: the same rule as the other peers here. Processes
are not pinned: Gloo's own thread needs room.
"""

import json
import mmap
import multiprocessing
import os
import struct
import sys
import tempfile
import time

import torch
import torch.distributed as dist

RANKS = 2
BARRIER_TIMEOUT_S = 60


class Barrier:
    """A spinning barrier of all ranks in shared memory: it ends on both at nearly the same time."""

    def __init__(self, memory, rank):
        self.memory, self.rank, self.turn = memory, rank, 0

    def wait(self):
        self.turn += 1
        struct.pack_into("<Q", self.memory, 64 * self.rank, self.turn)
        end = time.monotonic() + BARRIER_TIMEOUT_S
        while struct.unpack_from("<Q", self.memory, 64 * (1 - self.rank))[0] < self.turn:
            if time.monotonic() > end:
                sys.exit("allreduce.py: barrier timed out")


def measure(barrier, nbytes, warmup, iterations):
    """Times one size and returns p50, mean, p99 in microseconds and the number of wrong elements that were looked at."""
    tensor = torch.empty(nbytes // 4, dtype=torch.float32)
    spent, wrong = [], 0
    for it in range(-warmup, iterations):
        value = float(1 + (it + warmup) % 60)
        tensor.fill_(value)
        barrier.wait()
        start = time.perf_counter_ns()
        dist.all_reduce(tensor)
        end = time.perf_counter_ns()
        if it >= 0:
            spent.append((end - start) / 1000)
        wrong += int(tensor[0] != RANKS * value) + int(tensor[-1] != RANKS * value)
    spent.sort()
    return [spent[len(spent) // 2], sum(spent) / len(spent), spent[min(len(spent) - 1, len(spent) * 99 // 100)]], wrong


def main(rank, memory, store, specs):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=RANKS)
    barrier = Barrier(memory, rank)
    for spec in specs:
        nbytes, warmup, iterations = map(int, spec.split(":"))
        figures, wrong = measure(barrier, nbytes, warmup, iterations)
        total = torch.tensor([*figures, float(wrong)], dtype=torch.float64)
        dist.all_reduce(total)
        if rank == 0:
            p50, mean, p99 = (float(v) / RANKS for v in total[:3])
            print(json.dumps({"what": "allreduce", "bytes": nbytes, "p50": p50, "mean": mean, "p99": p99, "wrong": int(total[3])}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1:] == ["--version"]:
        print(torch.__version__)
        sys.exit(0 if dist.is_gloo_available() else "torch has no Gloo")
    shared = mmap.mmap(-1, 4096)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        fork = multiprocessing.get_context("fork")
        ranks = [fork.Process(target=main, args=(r, shared, os.path.join(folder, "store"), sys.argv[1:])) for r in range(RANKS)]
        for p in ranks:
            p.start()
        for p in ranks:
            p.join()
        sys.exit(max(abs(p.exitcode) for p in ranks))
