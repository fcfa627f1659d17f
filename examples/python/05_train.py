"""Trains a toy model with PyTorch's DistributedDataParallel over GCCL: two processes, CPU tensors.

Any launcher of PyTorch will do as well: torchrun --nproc-per-node 2 05_train.py.
"""

import os
import sys
import tempfile

try:
    import torch
    import torch.distributed as dist
except ImportError:
    sys.exit("05_train.py needs PyTorch (Debian: apt-get install python3-torch; else: pip install torch)")

import gccl.torch  # noqa: F401  makes the backend "gccl"


def train():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    layers = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    model = torch.nn.parallel.DistributedDataParallel(layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    data = torch.Generator().manual_seed(dist.get_rank())  # each rank has samples of its own
    first = last = 0.0
    for step in range(200):
        x = torch.randn(32, 8, generator=data)
        loss = torch.nn.functional.mse_loss(model(x), torch.sin(x.sum(1, keepdim=True)))
        optimizer.zero_grad()
        loss.backward()  # gradients are averaged over the ranks
        optimizer.step()
        if step % 40 == 0 or step == 199:
            mean = loss.detach()
            dist.all_reduce(mean)
            last = mean.item() / dist.get_world_size()
            first = first or last
            if dist.get_rank() == 0:
                print(f"step {step:3d}  loss {last:.4f}", flush=True)
    assert last < first / 2, "it has learned nothing"


def rank_main(rank, meet):
    dist.init_process_group("gccl", init_method=f"file://{meet}", rank=rank, world_size=2)
    train()
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:  # started by torchrun
        dist.init_process_group("gccl")
        train()
        dist.destroy_process_group()
    else:
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(rank_main, (os.path.join(folder, "meet"),), nprocs=2)
