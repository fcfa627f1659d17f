"""Trains a small model with DDP or FSDP and prints its losses: python3 train.py ddp|fsdp NRANKS nccl|gccl|gloo OUT.json [workers]

The data does not depend on the backend, so losses of two backends can be compared."""

import json
import sys

import torch
import torch.distributed as dist
import torch.nn as nn

import common

mode, nranks, backend, out = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
workers = int(sys.argv[5]) if len(sys.argv) > 5 else 0
STEPS, BATCH = 50, 16


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return STEPS * BATCH * nranks

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        x = torch.randn(64, generator=g)
        return x, torch.sin(x.sum()).reshape(1)


def main(rank, n):
    dev = common.device()
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1)).to(dev)
    if mode == "ddp":
        model = nn.parallel.DistributedDataParallel(model, device_ids=None if dev.index is None else [dev.index])
    else:
        from torch.distributed.fsdp import fully_shard

        for layer in model:
            if isinstance(layer, nn.Linear):
                fully_shard(layer)
        fully_shard(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    sampler = torch.utils.data.distributed.DistributedSampler(Samples(), n, rank, shuffle=False)
    # Workers fork from a process that has used the library.
    loader = torch.utils.data.DataLoader(
        Samples(), BATCH, sampler=sampler, num_workers=workers, multiprocessing_context="fork" if workers else None
    )
    losses = []
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x.to(dev)), y.to(dev))
        loss.backward()
        opt.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / n)
    assert len(losses) == STEPS, len(losses)
    if rank == 0:
        print("library:", common.library(), "losses", losses[0], "...", losses[-1], flush=True)
        with open(out, "w") as f:
            json.dump(losses, f)


common.start(nranks, main, backend)
