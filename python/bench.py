"""Measures the package: import, cost of a call, Ctrl-C, and DDP against gloo. ``make bench-python``; tables are Markdown.

Medians over rounds in which what is compared takes turns; beside them the best round, which a busy machine disturbs less.
Processes are pinned to a CPU each where there are two.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import timeit

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
ROUNDS = int(os.environ.get("GCCL_TEST_ROUNDS", "15"))


def row(what, asked, value):
    print(f"| {what} | {asked} | {value} |", flush=True)


def python(code, **env):
    """Runs code in a fresh interpreter that may write bytecode, and returns the numbers it prints."""
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    clean["PYTHONPATH"] = sys.path[0]
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=dict(clean, **env)).stdout
    return [float(x) for x in out.split()]


def importing():
    code = "import time; t = time.perf_counter(); import gccl; print((time.perf_counter() - t) * 1e3)"
    python(code)
    taken = [python(code)[0] for _ in range(ROUNDS)]
    row("import gccl", "50 ms", f"{statistics.median(taken):.1f} ms, best {min(taken):.1f}")


def call_cost():
    """A communicator of one rank, in place: the C call itself is some tens of nanoseconds."""
    import numpy as np

    import gccl
    from gccl._library import calls

    (comm,) = gccl.Communicator.init_all(1, device="host")
    x, y = np.zeros(2, np.float32), np.zeros(2, np.float32)
    address, handle, bare = x.ctypes.data, comm.ptr, calls.ncclAllReduce
    cases = {
        "ctypes alone, seven arguments": lambda: bare(address, address, 2, 7, 0, handle, None),
        "numpy, in place": lambda: comm.allreduce(x),
        "numpy, two arrays": lambda: comm.allreduce(x, y),
    }
    try:
        import torch

        t = torch.zeros(2)
        cases["torch CPU tensor, in place"] = lambda: comm.allreduce(t)
    except ImportError:
        pass
    n, taken = 200, {name: [] for name in cases}  # short, so that few samples contain a switch to another process
    for _ in range(20 * ROUNDS):
        for name, f in cases.items():
            taken[name].append(timeit.timeit(f, number=n) / n * 1e6)
    for name, t in taken.items():
        asked = "" if "ctypes" in name else "4 µs"
        row(f"all-reduce of one rank, {name}", asked, f"{statistics.median(t):.2f} µs, best {min(t):.2f}")
    comm.destroy()


def ctrl_c():
    code = """
import gccl, os, signal, threading, time
one, two = gccl.Communicator.init_all(2, device="host")
threading.Timer(0.3, lambda: (globals().update(t=time.perf_counter()), os.kill(os.getpid(), signal.SIGINT))).start()
try:
    one.recv(bytearray(1 << 16), 1)
except KeyboardInterrupt:
    print((time.perf_counter() - t) * 1e3)
"""
    taken = [python(code)[0] for _ in range(ROUNDS)]
    row("Ctrl-C to KeyboardInterrupt, median and longest", "1 s", f"{statistics.median(taken):.0f} ms, {max(taken):.0f} ms")


def _rank(rank, path, results):
    import datetime

    import torch
    import torch.distributed as dist

    import gccl.torch  # noqa: F401

    if (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % len(os.sched_getaffinity(0))]})
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=100)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2, timeout=limit)
    groups = {"gccl": dist.new_group(backend="gccl", timeout=limit), "gloo": dist.group.WORLD}

    def model(group):
        torch.manual_seed(1)
        linear, relu = torch.nn.Linear, torch.nn.ReLU
        layers = torch.nn.Sequential(linear(256, 512), relu(), linear(512, 512), relu(), linear(512, 10))
        return torch.nn.parallel.DistributedDataParallel(layers, process_group=group)

    models, inside = {name: model(g) for name, g in groups.items()}, []

    def hook(group, bucket):
        """All-reduces a bucket as DDP does by itself, and notes when it began and ended."""
        start = time.perf_counter()
        future = dist.all_reduce(bucket.buffer().div_(2), group=group, async_op=True).get_future()

        def end(f):
            inside.append(time.perf_counter() - start)
            return f.value()[0]

        return future.then(end)

    for name, m in models.items():
        m.register_comm_hook(groups[name], hook)
    nbytes = sum(p.numel() * 4 for p in models["gccl"].parameters())
    x = torch.randn(2, 256)

    def step(name):
        models[name].zero_grad()
        models[name](x).sum().backward()

    def micros(f, times):
        dist.barrier(group=groups["gloo"])
        start = time.perf_counter()
        for _ in range(times):
            f()
        return (time.perf_counter() - start) / times * 1e6

    found = {}

    def note(key, value):
        found.setdefault(key, []).append(value)

    tensors = {n: torch.ones(n // 4) for n in (8, 4096, 262144, nbytes, 16 << 20)}
    for name in groups:
        for _ in range(3):
            step(name)
            dist.all_reduce(tensors[8], group=groups[name])
    for k in range(4 * ROUNDS):
        turns = list(groups.items())[:: 1 if k % 2 else -1]
        for name, g in turns:
            for n, t in tensors.items():
                note((name, n), micros(lambda: dist.all_reduce(t, group=g), 20 if n < 1 << 20 else 4))
        for name, _ in turns:
            inside.clear()
            note((name, "DDP step of a small model"), micros(lambda: step(name), 4))
            note((name, "communication in it"), sum(inside) / 4 * 1e6)
    if rank == 0:
        torch.save({k: (statistics.median(v), min(v)) for k, v in found.items()}, results)
    dist.barrier()
    os._exit(0)  # torch 1.13 may never end otherwise: gloo joins its threads with the lock held that their Python callbacks need


def against_gloo():
    try:
        import torch
        import torch.multiprocessing as mp
    except ImportError:
        print("| DDP against gloo | not measured: no torch | |")
        return
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, "results")
        mp.spawn(_rank, (os.path.join(folder, "meet"), results), nprocs=2)
        t = torch.load(results)
    print(f"\ntorch {torch.__version__}, 2 processes, a thread each; µs, median and best.\n")
    print("| what | gccl | gloo | gloo / gccl |\n| --- | --- | --- | --- |")

    def compare(what, ours, theirs):
        ratio = ", ".join(f"{b / a:.2f}" if a > 0 and b > 0 else "?" for a, b in zip(ours, theirs))
        print(f"| {what} | {ours[0]:.0f}, {ours[1]:.0f} | {theirs[0]:.0f}, {theirs[1]:.0f} | {ratio} |")

    for key in [k for name, k in t if name == "gccl"]:
        what = f"all_reduce of {key} bytes" if isinstance(key, int) else key
        compare(what, t["gccl", key], t["gloo", key])


if __name__ == "__main__":
    print("| what | asked | measured |\n| --- | --- | --- |")
    importing()
    call_cost()
    ctrl_c()
    against_gloo()
