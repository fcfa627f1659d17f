"""Starts ranks of torch.distributed as processes of one script, all on one GPU unless GCCL_DEVICES says more."""

import datetime
import os
import socket
import subprocess
import sys
import time


DEVICE = os.environ.get("GCCL_TEST_DEVICE", "cuda")  # "cpu": to try the scripts where there is no GPU, with backends gccl and gloo


def device():
    """Where this rank's tensors are."""
    import torch

    return torch.device("cuda", torch.cuda.current_device()) if DEVICE == "cuda" else torch.device(DEVICE)


def start(nranks, main, backend="nccl", deadline=200):
    """In the parent: runs this script again for each rank and ends with their worst code. In a rank: calls main(rank, nranks)."""
    if "GCCL_TORCH_RANK" not in os.environ:
        sys.exit(_parent(nranks, backend, deadline))
    import torch
    import torch.distributed as dist

    rank = int(os.environ["GCCL_TORCH_RANK"])
    if os.environ["GCCL_TORCH_BACKEND"] == "gccl":
        import gccl.torch  # noqa: F401  registers the backend
    if DEVICE == "cuda":
        torch.cuda.set_device(rank % int(os.environ.get("GCCL_DEVICES", "1")))
    torch.backends.cuda.matmul.allow_tf32 = False
    dist.init_process_group(
        backend=os.environ["GCCL_TORCH_BACKEND"],
        init_method="tcp://127.0.0.1:" + os.environ["GCCL_TORCH_PORT"],
        rank=rank,
        world_size=int(os.environ["GCCL_TORCH_SIZE"]),
        timeout=datetime.timedelta(seconds=90),
    )
    main(rank, int(os.environ["GCCL_TORCH_SIZE"]))
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    dist.destroy_process_group()
    print(f"rank {rank}: ok", flush=True)


def _parent(nranks, backend, deadline):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ranks = []
    for r in range(nranks):
        env = dict(os.environ, GCCL_TORCH_RANK=str(r), GCCL_TORCH_SIZE=str(nranks), GCCL_TORCH_PORT=str(port), GCCL_TORCH_BACKEND=backend)
        preload = env.pop("GCCL_PRELOAD", "")
        if preload and backend == "nccl":
            env["LD_PRELOAD"] = preload
        ranks.append(subprocess.Popen([sys.executable, *sys.argv], env=env))
    end, worst = time.time() + deadline, 0
    while any(p.poll() is None for p in ranks):
        bad = [r for r, p in enumerate(ranks) if p.poll() not in (None, 0)]
        if bad and end > time.time() + 10:
            print(f"rank {bad[0]} ended with code {ranks[bad[0]].poll()}", flush=True)
            end = time.time() + 10
        if time.time() > end:
            print("not all ranks came to an end: " + ", ".join(str(r) for r, p in enumerate(ranks) if p.poll() is None), flush=True)
            for p in ranks:
                p.kill()
            worst = 1
            break
        time.sleep(0.02)
    for p in ranks:
        worst = worst or p.wait()
    return worst


def library():
    """The file of the NCCL that this process really uses."""
    with open("/proc/self/maps") as maps:
        files = {line.split()[-1] for line in maps if "libnccl" in line or "libgccl.so" in line}
    return ", ".join(sorted(files))
