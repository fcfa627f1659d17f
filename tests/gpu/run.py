"""The checks on one GPU; see run.sh."""

import json
import os
import re
import sys

import around
import gpulib
import peers
from gpulib import BUNDLE, OUT, WORK, Mps

SECONDS = 465  # of a section that says nothing else
ROUNDS = os.environ.get("GCCL_TEST_ROUNDS", "1000")
SPIN = dict(GCCL_CUDA_EXECUTOR="spin", CUDA_DEVICE_MAX_CONNECTIONS="32")  # a kernel of each rank, which wait for each other (docs/cuda.md)
CAP = int(os.environ.get("GCCL_TEST_CAP", str(1 << 30)))  # largest size of the speed section, to try the script without a GPU


def spin_mps(mps, n):
    """The same for n processes under MPS, which has connections for four processes of 8, not for four of 32 (seen on driver 580)."""
    return dict(SPIN, CUDA_DEVICE_MAX_CONNECTIONS=str(32 // n), **mps.env)


def suite(r, program, name, launch, ranks, timeout=30, env=None, label="", args=()):
    e = r.ours(**{**dict(GCCL_TEST_ROUNDS=ROUNDS, NCCL_DEBUG="WARN"), **(env or {})})
    argv = [os.path.join(BUNDLE, "bin", program), "--memory", "cuda", "--suite", name, "--launch", launch, "--ranks", str(ranks), "--limit", str(timeout - 5), *args]
    return r.step("%s %s %s %d%s" % (program, name, launch, ranks, label), argv, timeout, e)


def suites(r):
    probe = suite(r, "cuda", "probe", "procs", 2)
    if not (probe and probe.ok):
        r.row("2", "two ranks share the GPU", "fail", probe.why() if probe else "no time")
        return
    r.row("2", "two ranks share the GPU", "pass", [x for x in probe.text.splitlines() if "device 0" in x][:1][0])
    fatbin = r.kernels()
    if fatbin:
        r.judge("1", "every kernel against the host reductions", [r.step("kernels-check", [BUNDLE + "/bin/kernels-check", fatbin], 200)])
    else:
        r.row("1", "every kernel against the host reductions", "not run", "no fat binary in the bundle")
    # What the issue names first comes first, in case the time is over.
    for name, part, text in (
        ("fill", "4", "kernels that fill the GPU before, beside and around, also cooperative"),
        ("between", "4", "kernels that fill the GPU between queued collectives"),
        ("manystreams", "4", "12 streams with work behind"),
        ("crossed", "4", "two communicators in different order on different ranks"),
        ("later", "4", "an executor that calls after the others have returned"),
        ("idle", "3a", "buffers freed and given out again"),
        ("pool", "3a", "memory of the stream-ordered allocator"),
        ("poolcapture", "3a", "the same in graphs beside eager calls"),
        ("bad", "bad input", "host pointers, freed memory, counts past the allocation"),
    ):
        r.judge(part, text, [suite(r, "cuda", name, launch, n) for launch, n in (("threads", 2), ("procs", 4), ("group", 8))])
    r.judge("4", "a send, a collective, a receive in one hardware queue", [suite(r, "cuda", "onequeue", "procs", 2, env=dict(CUDA_DEVICE_MAX_CONNECTIONS="1"))])
    r.judge("4", "CUDA_LAUNCH_BLOCKING=1, one rank a process",
            [suite(r, "cuda", name, "procs", 3, env=dict(CUDA_LAUNCH_BLOCKING="1"), label=" blocking") for name in ("fill", "between", "crossed", "capture")])
    r.judge("4", "16 ranks", [suite(r, "cuda", "fill", launch, 16, env=dict(GCCL_TEST_ROUNDS="100"), timeout=90) for launch in ("procs", "group")])
    for name, text in (
        ("capture", "capture and 50 replays, eager calls between"), ("mixing", "replays beside eager calls on another stream"),
        ("firstcapture", "the first collective ever in a capture"), ("twocomms", "two communicators in one graph"),
        ("endings", "graph and communicator end in any order"), ("forkjoin", "one capture over forked streams"),
    ):
        where = (("group", 2), ("group", 4)) if name == "forkjoin" else (("threads", 2), ("procs", 4), ("group", 4))
        r.judge("5", text, [suite(r, "cuda", name, launch, n) for launch, n in where])
    r.judge("3c", "copies and memory operations only", [suite(r, "cuda", "zerocta", launch, n) for launch, n in (("procs", 2), ("threads", 3), ("group", 4))]
            + [suite(r, "hostapi", "pairs", "procs", 3, env={"NCCL_CTA_POLICY": "ZERO"}, label=" copies")])
    r.judge("8", "one-sided operations in graphs", [suite(r, "cuda", "signals", launch, n) for launch, n in (("procs", 2), ("procs", 4), ("group", 4))]
            + [suite(r, "cuda", "signalabort", "procs", 2), suite(r, "cuda", "signalsapart", "threads", 2)])
    r.judge("7", "a killed peer frees the others within 5 s with its name", [suite(r, "cuda", "killed", "procs", n, 30) for n in (2, 4)])
    r.judge("7", "abort during a captured replay", [suite(r, "cuda", "replayabort", "procs", n, 30) for n in (2, 4)])
    r.judge("7", "what ends the wait for other ranks' calls", [suite(r, "cuda", "waits", launch, n) for launch, n in (("threads", 2), ("procs", 3))]
            + [suite(r, "cuda", "killedleader", "procs", 3, 30)])
    foot = [suite(r, "cuda", "footprint", launch, 8) for launch in ("procs", "group")]
    r.judge("speed", "device memory of a communicator of 8 ranks at most 64 MiB", foot,)
    r.rows[-1]["reason"] += "; " + "; ".join(x[2:] for f in foot if f for x in f.text.splitlines() if "device memory of" in x)[:200]
    for name, text in (
        ("numbers", "edges of the number types"), ("matrix", "all collectives, types and operators"), ("groups", "groups"), ("streams", "several streams"), ("windows", "windows"),
        ("onesided", "put-signal, signal, wait-signal"), ("memory", "memory, registration, suspend and resume"), ("nonblocking", "nonblocking communicators"),
        ("making", "making communicators"), ("children", "split, shrink, grow, revoke"), ("ending", "finalize, destroy, abort"), ("badargs", "wrong arguments"), ("library", "versions and texts"),
        ("pairs", "pairs of all factors"), ("large", "large counts"),
    ):
        r.judge("8", "host API on CUDA memory: " + text, [suite(r, "hostapi", name, launch, n) for launch, n in (("threads", 3), ("procs", 3), ("group", 5))])
    r.judge("8", "per-thread default stream", [suite(r, "hostapi", "streams", launch, 3, label=" ptds", args=("--null", "thread")) for launch in ("threads", "procs")])
    # One GPU: streams of their own, and a queue for each. Without MPS processes take turns, so few suites.
    for name, where in (("spin", (("group", 2), ("group", 4), ("procs", 2))), ("capture", (("group", 2), ("group", 4))), ("twocomms", (("threads", 2), ("group", 4))),
                        ("endings", (("threads", 2), ("group", 4))), ("forkjoin", (("group", 2), ("group", 4))), ("crossed", (("group", 2),))):
        r.judge("3b", "a kernel of each rank: " + name, [suite(r, "cuda", name, launch, n, env=dict(SPIN, GCCL_TEST_ROUNDS="100"), label=" spin") for launch, n in where])
    r.judge("3b", "a kernel of each rank: a killed peer, abort, revoke, a rank that leaves",
            [suite(r, "cuda", name, "procs", n, env=SPIN, label=" spin") for name in ("killed", "replayabort", "waits") for n in (2, 4)])
    with Mps(r) as mps:
        if mps is None:
            r.row("4", "the same under MPS", "not run", "nvidia-cuda-mps-control does not start")
        else:
            for name in ("spin", "mixing", "capture", "killed", "footprint"):
                r.judge("3b", "a kernel of each rank under MPS: " + name,
                        [suite(r, "cuda", name, "procs", n, env=dict(spin_mps(mps, n), GCCL_TEST_ROUNDS="100"), label=" spin mps") for n in (2, 4)])
            r.judge("3b", "a kernel of each rank under MPS: host API", [suite(r, "hostapi", name, "procs", 4, env=spin_mps(mps, 4), label=" spin mps") for name in ("matrix", "groups", "streams")])
            r.judge("4", "under MPS", [suite(r, "cuda", name, "procs", 4, env=mps.env, label=" mps") for name in ("fill", "manystreams", "crossed", "capture")]
                    + [suite(r, "hostapi", "matrix", "procs", 4, env=mps.env, label=" mps")])


def foreign_headers():
    """NVIDIA's headers on this machine, with the versions that foreign.cc knows: folders of NVIDIA_HEADERS, and PyTorch's."""
    folders = os.environ.get("NVIDIA_HEADERS", "").split(":") + [(gpulib.nvidia_nccl() or "") + "/include"]
    found = {}
    for f in folders:
        try:
            with open(os.path.join(f, "nccl.h")) as h:
                version = [x.split()[2] for x in h if x.startswith("#define NCCL_VERSION_CODE")][0]
        except (OSError, IndexError):
            continue
        if version in ("22809", "23007") and os.path.exists(os.path.join(f, "nccl_device.h")):
            found.setdefault(version, f)
    return sorted(found.items())


def cubins():
    """Kernels of tests/device and tests/devgin, or None."""
    files = {name: os.path.join(BUNDLE, "lib", name + "-90.cubin") for name in ("full", "gin")}
    return files if all(os.path.exists(p) for p in files.values()) else None


def lsa(r, name, launch, ranks, env=None, label="", more=(), under=(), timeout=60):
    """A suite of tests/device; under: a program that runs it."""
    argv = [*under, BUNDLE + "/bin/device", "--cubin", cubins()["full"], "--suite", name, "--launch", launch, "--ranks", str(ranks), *more]
    return r.step("device %s %s %d%s" % (name, launch, ranks, label), argv, timeout, r.ours(NCCL_DEBUG="WARN", **(env or {})))


def gin(r, ranks, *suites, env=None, label="", timeout=60, procs=False, hosts=0, under=()):
    """Suites of tests/devgin."""
    argv = [*under, BUNDLE + "/bin/devgin", "--cubin", cubins()["gin"], *(["--procs"] if procs else []), *(["--hosts", str(hosts)] if hosts else []), str(ranks), *suites]
    return r.step("devgin %d %s%s" % (ranks, " ".join(suites), label), argv, timeout, r.ours(NCCL_DEBUG="WARN", **(env or {})))


def times(r, part, what, x):
    """Rows of a program's "speed" lines."""
    for line in x.text.splitlines() if x else ():
        m = re.match(r"speed (.*\S) +(\d+) ranks +(\S+ us.*)", line)
        if m:
            r.row(part, "%s%s, %s ranks" % (what, *m.group(1, 2)), "measured", m.group(3))


def device_api(r):
    if not cubins():
        r.row("device API", "kernels of this library's header", "not run", "no kernels in the bundle")
        return

    r.judge("device API", "groups, shared memory, local reductions", [lsa(r, name, "threads", 1) for name in ("cuda", "coops", "reduce")])
    for name, text in (("teams", "teams"), ("pointers", "windows and pointers"), ("barriers", "LSA barriers"), ("a2a", "LL all-to-all"), ("allreduce", "LSA all-reduce"),
                       ("failures", "timeouts, a communicator that fails")):
        r.judge("device API", text, [lsa(r, name, "threads", n) for n in (1, 2, 4, 8)] + [lsa(r, name, "procs", 2)])
    with Mps(r) as mps:
        if mps is None:
            r.row("device API", "under MPS", "not run", "nvidia-cuda-mps-control does not start")
        else:
            r.judge("device API", "under MPS", [lsa(r, name, "procs", 4, env=mps.env, label=" mps") for name in ("pointers", "barriers", "a2a", "allreduce")])
    for version, include in foreign_headers():
        cubin = os.path.join(WORK, "foreign-%s.cubin" % version)
        made = r.step("nvcc foreign.cu %s" % version, ["nvcc", "-cubin", "-arch=sm_90", "-std=c++17", "-I", include, "-o", cubin, BUNDLE + "/foreign.cu"], 120)
        runs = [made] + [r.step("device foreign %s %s %d" % (version, launch, n),
                                [BUNDLE + "/bin/device", "--cubin", cubin, "--suite", "foreign", "--launch", launch, "--ranks", str(n)], 60,
                                r.ours(NCCL_DEBUG="WARN", GCCL_TEST_HEADER=version)) for launch, n in (("threads", 2), ("threads", 4), ("procs", 2))]
        r.judge("device API", "kernels compiled with NVIDIA's header %s: LSA" % version, runs)
        runs = [made] + [r.step("device foreign_gin %s %s %d" % (version, launch, n),
                                [BUNDLE + "/bin/device", "--cubin", cubin, "--suite", "foreign_gin", "--launch", launch, "--ranks", str(n)], 60,
                                r.ours(NCCL_DEBUG="WARN", GCCL_TEST_HEADER=version)) for launch, n in (("threads", 2), ("threads", 4), ("procs", 2))]
        r.judge("device API", "kernels compiled with NVIDIA's header %s: GIN by proxy" % version, runs)
    r.judge("device API", "GIN, backend direct", [gin(r, n) for n in (1, 2, 3, 4)])
    few = dict(GCCL_TEST_SIGNALS="40", GCCL_TEST_PUTS="200", GCCL_TEST_SOAK="300")  # without MPS processes take turns of milliseconds
    for backend in ("proxy", "gdaki"):
        env = dict(GCCL_GIN=backend)
        r.judge("device API", "GIN, backend %s, threads" % backend, [gin(r, n, env=env, label=" " + backend) for n in (1, 2, 4)])
        r.judge("device API", "GIN, backend %s, beyond LSA teams of 2" % backend,
                [gin(r, 4, env=dict(GCCL_GIN="direct," + backend, NCCL_LSA_TEAM_SIZE="2"), label=" direct," + backend)])
        many = dict(env, CUDA_DEVICE_MAX_CONNECTIONS="32")  # with 8, copies of the program can hold up the library's (docs/device-api.md)
        r.judge("device API", "GIN, backend %s, copies and kernels queued behind, 32 connections" % backend, [gin(r, 2, "behind", env=many, label=" behind " + backend)])
        r.judge("device API", "GIN, backend %s, from a kernel that fills the GPU" % backend, [gin(r, 1, "full", env=env, label=" full " + backend)])
        r.judge("device API", "GIN, backend %s, processes" % backend, [gin(r, 2, env={**env, **few}, label=" procs " + backend, procs=True, timeout=100)])
        with Mps(r) as mps:
            if mps is not None:
                r.judge("device API", "GIN, backend %s, processes, MPS" % backend, [gin(r, 2, env={**env, **mps.env}, label=" procs mps " + backend, procs=True)])
    for backend in ("proxy", "gdaki"):
        env = dict(GCCL_GIN="direct," + backend, **few)
        r.judge("device API", "GIN, backend %s, two hosts (NCCL_HOSTID), through bounce memory" % backend,
                [gin(r, n, env=env, label=" 2 hosts " + backend, hosts=2, timeout=100) for n in (2, 4)] + [gin(r, 2, "full", env=env, label=" 2 hosts full " + backend, hosts=2)])
    r.judge("device API", "a process of another host is killed while kernels put", [gin(r, n, "killed", label=" 2 hosts killed", hosts=2) for n in (2, 4)])
    r.judge("device API", "teams, LSA barriers, LL all-to-all, two hosts", [lsa(r, name, "procs", 4, label=" 2 hosts", more=("--hosts", "2")) for name in ("teams", "barriers", "a2a")])
    runs = [("", lsa(r, "speed", "threads", n)) for n in (2, 4, 8)] + [("direct: ", gin(r, 2, "speed"))]
    runs += [(backend + ": ", gin(r, 2, "speed", env=dict(GCCL_GIN=backend), label=" " + backend)) for backend in ("proxy", "gdaki")]
    with Mps(r) as mps:  # without it processes take turns of milliseconds
        if mps is not None:
            runs += [("proxy, two hosts, MPS: ", gin(r, 2, "speed", env=dict(mps.env, GCCL_GIN="proxy"), label=" 2 hosts mps", hosts=2, timeout=100))]
    runs += [("proxy, copies on SMs: ", gin(r, 2, "speed", env=dict(GCCL_GIN="proxy", GCCL_GIN_SM_COPY="1"), label=" proxy sm"))]
    r.judge("device API", "times", [x for _, x in runs])
    for what, x in runs:
        times(r, "device API", what, x)


PROGRAMS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "alltoallv", "gather", "scatter", "sendrecv", "hypercube")


def perf(r, folder, program, args, env, label, mpi=0, timeout=60):
    argv = [os.path.join(folder, program + "_perf"), *args]
    if mpi:
        argv = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(mpi), "--mca", "btl", "self,vader,tcp"] + argv
    x = r.step("%s %s" % (program, label), argv, timeout, env)
    if x is not None and x.ok and gpulib.wrong(x.text):
        x.ok, x.code = False, "wrong values or no table"
    return x


def clients(r):
    built, mpi, why = gpulib.nccl_tests(r)
    if built:
        one = r.ours(GCCL_ONE_DEVICE="1")
        for program in PROGRAMS:
            # The steps of a hypercube need each other's results, and in one process with -g all of them are one group, which has no order.
            flag = "-t" if program == "hypercube" else "-g"
            r.judge("9", "nccl-tests %s, 1 process, -c 1" % program,
                    [perf(r, built, program, [flag, str(n), "-b", "8", "-e", "16M", "-f", "8", "-n", "5", "-w", "2", "-c", "1"], one, "%s %d" % (flag, n)) for n in (2, 4)])
        small = ["-b", "8", "-e", "8M", "-f", "8", "-n", "5", "-w", "2", "-c", "1"]
        r.judge("9", "nccl-tests all types and operators", [perf(r, built, "all_reduce", ["-g", "2", "-d", "all", "-o", "all", "-b", "8", "-e", "1M", "-f", "64", "-n", "2", "-w", "1", "-c", "1"], one, "all types", timeout=120)])
        for name, args in (("-G (graphs)", ["-G", "5"]), ("-R 1 (registered)", ["-R", "1"]), ("-R 2 (symmetric windows)", ["-R", "2"])):
            r.judge("9", "nccl-tests " + name, [perf(r, built, p, ["-g", "2", *small, *args], one, args[0] + args[1]) for p in ("all_reduce", "all_gather", "alltoall", "sendrecv")])
        r.judge("9", "nccl-tests -t 4 (threads)", [perf(r, built, p, ["-t", "4", "-g", "1", *small], one, "-t 4") for p in ("all_reduce", "sendrecv")])
        r.judge("9", "nccl-tests -g 8", [perf(r, built, p, ["-g", "8", *small], one, "-g 8") for p in ("all_reduce", "alltoall")])
    else:
        r.row("9", "nccl-tests", "not run", why)
    if mpi:
        each = r.ours(NCCL_TESTS_DEVICE="0")
        for n in (2, 4, 8):
            r.judge("9", "nccl-tests, %d processes, no MPS" % n, [perf(r, mpi, p, ["-g", "1", *small], each, "-np %d" % n, mpi=n) for p in ("all_reduce", "all_gather", "sendrecv", "alltoall")])
        r.judge("9", "nccl-tests, processes, -G and -R 2", [perf(r, mpi, "all_reduce", ["-g", "1", *small, *a], each, "-np 2 " + a[0], mpi=2) for a in (["-G", "5"], ["-R", "2"])])
    else:
        r.row("9", "nccl-tests with processes", "not run", why or "no mpi.h on this machine, or it does not build")
    cupy = gpulib.output([sys.executable, "-c", "import cupy; print(cupy.__version__)"])
    if cupy:
        r.judge("9", "cupy's binding", [r.step("cupy", [sys.executable, BUNDLE + "/torch/cupy_nccl.py"], 120, r.ours(LD_PRELOAD=r.lib + "/libgccl.so"))])
    else:
        r.row("9", "cupy's binding", "not run", "cupy is not installed")
    if gpulib.output([sys.executable, "-c", "import nccl; print(nccl.__file__)"]):
        r.judge("9", "nccl4py's binding loads the library", [r.step("nccl4py", [sys.executable, "-c", "import nccl.core as n; print(n.get_version())"], 60, r.ours(LD_PRELOAD=r.lib + "/libgccl.so"))])
    else:
        r.row("9", "nccl4py's binding", "not run", "nccl4py is not installed")


def script(r, name, args, timeout=120, label=""):
    return r.step(" ".join(["torch", name, *args]) + label, [sys.executable, os.path.join(BUNDLE, "torch", name), *args], timeout,
                  r.python(GCCL_PRELOAD=r.lib + "/libgccl.so", NCCL_DEBUG="WARN", **DEVICES), cwd=os.path.join(BUNDLE, "torch"))


DEVICES = {}


def losses(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def train_rows(r, counts, ours="nccl", part="9"):
    for n in counts:
        files = {}
        for mode, backend in (("ddp", "gloo"), ("ddp", ours), ("fsdp", ours)):
            files[mode, backend] = os.path.join(WORK, "loss_%s_%s_%d.json" % (mode, backend, n))
            if os.path.exists(files[mode, backend]):
                os.remove(files[mode, backend])
            x = script(r, "train.py", [mode, str(n), backend, files[mode, backend]], label="")
            if backend == "gloo":
                base = losses(files[mode, backend])
                continue
            name = "%s training, backend %s, %d ranks: 50 losses equal gloo's to 1e-5" % (mode.upper(), backend, n)
            mine = losses(files[mode, backend])
            if x is None or not base:
                r.row(part, name, "not run", "no time" if x is None else "the gloo run gave no losses")
            elif not x.ok or not mine:
                r.row(part, name, "fail", x.why())
            else:
                off = max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(mine, base))
                r.row(part, name, "pass" if off <= 1e-5 else "fail", "largest relative difference %.1e" % off)


def torch(r):
    if not gpulib.output([sys.executable, "-c", "import torch; print(torch.cuda.is_available())"]).endswith("True"):
        return r.row("9", "PyTorch", "not run", "no PyTorch that sees a GPU")
    for n in (2, 4, 8):
        r.judge("9", "PyTorch, every collective, bit-equal sums, batch_isend_irecv, destroy_process_group, %d ranks" % n, [script(r, "collectives.py", [str(n)])])
    r.judge("9", "torch.cuda.graph around an all-reduce", [script(r, "graph.py", [str(n)]) for n in (2, 4)])
    train_rows(r, (2, 4))
    r.judge("9", "data-loader workers that fork", [script(r, "train.py", ["ddp", "2", "nccl", os.path.join(WORK, "loss_workers.json"), "2"])])
    train_rows(r, (8,))
    with Mps(r) as mps:
        if mps is None:
            r.row("9", "PyTorch under MPS", "not run", "nvidia-cuda-mps-control does not start")
        else:
            r.environment.update(mps.env)
            r.judge("9", "PyTorch under MPS, 4 ranks", [script(r, "collectives.py", ["4"], label=" mps")])


def speed_of(x):
    out = {}
    for line in (x.text if x else "").splitlines():
        if line.startswith("SPEED "):
            j = json.loads(line[6:])
            out[j["what"], j["bytes"]] = j
    return out


def at_most(r, name, table, key, limit):
    if key not in table:
        return r.row("speed", name, "not run", "not measured")
    us = table[key]["us"]
    r.row("speed", "%s ≤ %g µs" % (name, limit), "pass" if us <= limit else "fail", "%.2f µs" % us, us=us)


def speed(r):
    tables = {}
    with open(os.path.join(OUT, "speed.jsonl"), "w") as f:
        def measure(label, launch, n, most, env=None, timeout=70):
            x = suite(r, "cuda", "speed", launch, n, timeout, env=dict(GCCL_TEST_MAX=str(min(most, CAP)), **(env or {})), label=" " + label)
            tables[label] = t = speed_of(x)
            for j in t.values():
                f.write(json.dumps(dict(j, label=label)) + "\n")
            if x is not None and not x.ok:
                r.row("speed", "run " + label, "fail", x.why())
            copy = t.get(("floor: copy on the device", 1 << 30))
            big = t.get(("all_reduce eager", 1 << 30))
            if copy and big:
                share = n * copy["us"] / 1 / big["us"]  # n reads and n writes of 1 GiB: n copies
                r.row("speed", "%s: 1 GiB at ≥ 85 %% of the copy floor" % label, "pass" if share >= 0.85 else "fail", "%.0f %%, %.0f µs" % (share * 100, big["us"]))

        for n, limit in ((2, 7), (8, 11), (16, 18)):
            label = "1 process, %d ranks" % n
            measure(label, "group", n, 1 << 30)
            at_most(r, label + ": 8 B eager, safe", tables[label], ("all_reduce eager", 8), limit)
            if n == 2:
                at_most(r, label + ": 8 B in a graph, safe", tables[label], ("all_reduce graph", 8), 7)
            host, launch = tables[label].get(("all_reduce host time of a call", 8)), tables[label].get(("floor: empty launch, host time", 0))
            if host and launch:
                over = host["us"] * n - launch["us"]  # the group's calls have one kernel between them
                r.row("speed", label + ": host time of a call ≤ 2 µs beyond the launch", "pass" if over / n <= 2 else "fail", "%.2f µs a call, launch %.2f" % (host["us"], launch["us"]))
        def spinning(label, launch, n, env=None):
            measure(label, launch, n, 32 << 10, dict(SPIN, **(env or {})))
            t = tables[label]
            at_most(r, label + ": 8 B in a graph", t, ("all_reduce graph", 8), {2: 3.4, 8: 6}[n])
            at_most(r, label + ": 8 B eager", t, ("all_reduce eager", 8), {2: 7, 8: 11}[n] if launch == "group" else {2: 8.5, 8: 20}[n])
            host, launched = t.get(("all_reduce host time of a call", 8)), t.get(("floor: empty launch, host time", 0))
            if host and launched:
                over = host["us"] - launched["us"]  # each call is a launch
                r.row("speed", label + ": host time of a call ≤ 2 µs beyond the launch", "pass" if over <= 2 else "fail", "%.2f µs a call, launch %.2f" % (host["us"], launched["us"]))

        for n in (2, 8):
            spinning("spin, 1 process, %d ranks" % n, "group", n)
        measure("1 process, 8 ranks, 32 queues", "group", 8, 16 << 20, dict(CUDA_DEVICE_MAX_CONNECTIONS="32"))
        measure("1 process, 4 ranks, windows", "group", 4, 16 << 20, dict(GCCL_TEST_WINDOW="1"))
        for n, limit in ((2, 12), (8, 44)):
            label = "%d processes, no MPS" % n
            measure(label, "procs", n, (1 << 30) if n == 2 else (128 << 20))
            at_most(r, label + ": 8 B eager", tables[label], ("all_reduce eager", 8), limit)
        with Mps(r) as mps:
            if mps is None:
                r.row("speed", "processes under MPS", "not run", "nvidia-cuda-mps-control does not start")
            else:
                for n in (2, 8):
                    spinning("spin, %d processes, MPS" % n, "procs", n, spin_mps(mps, n))
                    measure("%d processes, MPS" % n, "procs", n, 16 << 20, mps.env)
                    t = tables["%d processes, MPS" % n].get(("all_reduce eager", 8))
                    r.row("speed", "%d processes, MPS: 8 B eager" % n, "not run" if not t else "pass" if t["us"] <= {2: 12.8 / 1.5, 8: 20}[n] else "fail",
                          "no figure" if not t else "%.2f µs; NCCL 2.30.7 took %s (PEERS, another run)" % (t["us"], {2: "12.8", 8: "20"}[n]))
    # NVIDIA's NCCL of the same machine is too old to share a GPU between ranks; as separate "hosts" it can be had.
    nvidia = gpulib.nvidia_nccl()
    built, mpi, why = gpulib.nccl_tests(r) if r.left() > 200 else (None, None, "no time to build nccl-tests")
    if mpi and nvidia:
        sizes = ["-g", "1", "-b", "8", "-e", "16M", "-f", "8", "-n", "20", "-w", "5", "-c", "0"]
        ours = perf(r, mpi, "all_reduce", sizes, r.ours(NCCL_TESTS_DEVICE="0"), "ours -np 2", mpi=2)
        hosts = ["bash", "-c", 'NCCL_HOSTID=h$OMPI_COMM_WORLD_RANK exec "$0" "$@"', os.path.join(mpi, "all_reduce_perf"), *sizes]
        theirs = r.step("all_reduce NVIDIA's as two hosts", ["mpirun", "--allow-run-as-root", "-np", "2", *hosts], 60,
                        dict(os.environ, LD_LIBRARY_PATH=nvidia + "/lib", NCCL_TESTS_DEVICE="0", NCCL_NVLS_ENABLE="0", NCCL_SOCKET_IFNAME="lo"))
        if ours and theirs and ours.ok and theirs.ok:
            a, b = gpulib.times(ours.text), gpulib.times(theirs.text)
            worst = min((b[k] / a[k], k) for k in a if k in b and a[k])
            r.row("speed", "ahead of NCCL 2.28.9 (as two hosts, TCP loopback) at every size", "pass" if worst[0] > 1 else "fail", "worst %.1f × at %d B" % worst)
        else:
            r.row("speed", "NCCL 2.28.9 as two hosts", "not run", next((x.why() for x in (ours, theirs) if x and not x.ok), "no time"))
    else:
        r.row("speed", "NCCL 2.28.9 as two hosts", "not run", why or "no mpi.h or no NCCL of PyTorch")
    sanitizer = gpulib.output(["bash", "-c", "command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer"]).splitlines()
    if sanitizer:
        x = r.step("memcheck", [sanitizer[0], "--tool", "memcheck", "--error-exitcode", "9", "--target-processes", "all", os.path.join(BUNDLE, "bin", "hostapi"), "--memory", "cuda",
                                "--suite", "groups", "--launch", "group", "--ranks", "3", "--limit", "100"], 110)
        r.judge("done", "compute-sanitizer memcheck over leader execution", [x])
    else:
        r.row("done", "compute-sanitizer memcheck over leader execution", "not run", "no compute-sanitizer")


SECTIONS = dict(suites=suites, clients=clients, torch=torch, speed=speed, **around.SECTIONS, device=device_api, **peers.SECTIONS)


def main():
    wanted = sys.argv[1:] or list(SECTIONS)
    bad = False
    for name in wanted:
        if name.isdigit() and 1 <= int(name) <= len(SECTIONS):
            name = list(SECTIONS)[int(name) - 1]
        if name not in SECTIONS:
            sys.exit("run.sh: no section %s; there are %s, or 1 to %d" % (name, ", ".join(SECTIONS), len(SECTIONS)))
        bad |= gpulib.section(name, {**around.SECONDS, **peers.SECONDS}.get(name, SECONDS), SECTIONS[name])
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
