"""The tests of the backend gccl (python/tests/torch_ranks.py) with every tensor on the GPU: python3 backend.py NRANKS gccl|nccl

Ranks share a GPU. Backend nccl, under LD_PRELOAD, runs those that ask nothing of NCCL that only backend gccl has: int16, messages in any order."""

import os
import sys

os.environ.setdefault("GCCL_TEST_DEVICE", "cuda")
sys.path.insert(0, os.environ["GCCL_PYTHON_TESTS"])

import torch

import common


def main(rank, n):
    import torch_ranks as tests

    torch.set_default_device(common.device())
    if rank == 0:
        print("library:", common.library(), flush=True)
    both = [tests.asynchronous, tests.objects, tests.groups, tests.coalesced]
    for test in both if sys.argv[2] == "nccl" else [tests.reductions, tests.moves, tests.messages, *both, tests.refused]:
        test(rank, n)
        if rank == 0:
            print(test.__name__ + ": ok", flush=True)


common.start(int(sys.argv[1]), main, sys.argv[2])
