"""torch.cuda.graph around an all-reduce, replayed with other inputs, with eager calls between: python3 graph.py NRANKS"""

import sys

import torch
import torch.distributed as dist

import common


def main(rank, n):
    dev = torch.device("cuda", torch.cuda.current_device())
    x, y, eager = (torch.zeros(4096, device=dev) for _ in range(3))
    dist.all_reduce(eager)  # the communicator is made before the capture, as PyTorch asks for
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y.copy_(x)
        y.mul_(2)
        dist.all_reduce(y)
        y.add_(1)
    for k in range(50):
        x.fill_(rank + k)
        graph.replay()
        torch.cuda.synchronize()
        want = float(2 * (n * k + n * (n - 1) // 2) + 1)
        if not bool((y == want).all()):
            raise SystemExit(f"replay {k}: rank {rank}: want {want}, got {y[0].item()}")
        if k % 5 == 0:
            eager.fill_(1)
            dist.all_reduce(eager)
            torch.cuda.synchronize()
            if not bool((eager == n).all()):
                raise SystemExit(f"eager after replay {k}: rank {rank}: got {eager[0].item()}")
    del graph


common.start(int(sys.argv[1]), main)
