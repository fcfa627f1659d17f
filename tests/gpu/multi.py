"""The checks on several GPUs of one host; see run-multi.sh. NVLink multicast stays off."""

import os
import sys

import gpulib
import run
from gpulib import BUNDLE, OUT

SECONDS = 560
GPUS = gpulib.gpus()
COUNTS = [n for n in (2, 4, 8) if n <= GPUS]
SIZES = ["-b", "8", "-e", os.environ.get("GCCL_TEST_MAX_SIZE", "8G"), "-f", "4", "-n", "20", "-w", "5"]


def topology(r):
    r.row("1", "GPUs of this host", "pass" if GPUS > 1 else "not run", "%d, at least 2 are needed" % GPUS)
    r.step("nvidia-smi topo", ["nvidia-smi", "topo", "-m"], 60)
    x = r.step("gccl-topo show", [BUNDLE + "/bin/gccl-topo", "show"], 60)
    r.judge("1", "our discovery runs (compare log/gccl-topo_show.txt with log/nvidia-smi_topo.txt)", [x])
    nvidia, (built, _, why) = gpulib.nvidia_nccl(), gpulib.nccl_tests(r)
    if nvidia and built and GPUS > 1:
        dump = os.path.join(OUT, "nccl-topo-%dgpu.xml" % GPUS)
        theirs = dict(os.environ, LD_LIBRARY_PATH=nvidia + "/lib", NCCL_TOPO_DUMP_FILE=dump, NCCL_GRAPH_DUMP_FILE=dump.replace("topo", "graph"), NCCL_DEBUG="INFO")
        x = r.step("NCCL's topology", [built + "/all_reduce_perf", "-g", str(GPUS), "-b", "8", "-e", "8", "-n", "1"], 120, theirs)
        r.judge("1", "NCCL's own dump, for the topology tests", [x])
    else:
        r.row("1", "NCCL's own dump", "not run", why or "one GPU, or no NCCL of PyTorch")


def compare(r, part, name, ours, theirs):
    """Ours ahead of theirs at every size of one run."""
    if ours is None or theirs is None:
        return r.row(part, name, "not run", "the section's time was over")
    if not ours.ok or not theirs.ok:
        return r.row(part, name, "fail" if not ours.ok else "not run", (ours if not ours.ok else theirs).why())
    a, b = gpulib.times(ours.text), gpulib.times(theirs.text)
    both = [k for k in a if k in b and a[k]]
    if not both:
        return r.row(part, name, "fail", "no common sizes")
    worst = min(both, key=lambda k: b[k] / a[k])
    behind = [k for k in both if a[k] > b[k]]
    r.row(part, name, "fail" if behind else "pass", "worst %.2f × at %d B (%.1f against %.1f µs); behind at %s" % (b[worst] / a[worst], worst, a[worst], b[worst], behind or "no size"),
          ours={str(k): a[k] for k in both}, theirs={str(k): b[k] for k in both})


def tests(r):
    built, mpi, why = gpulib.nccl_tests(r)
    nvidia = gpulib.nvidia_nccl()
    if not built or not nvidia or not COUNTS:
        r.row("2", "nccl-tests with both libraries", "not run", why or "%d GPUs" % GPUS)
        return
    ours, theirs = r.ours(), dict(os.environ, LD_LIBRARY_PATH=nvidia + "/lib")
    n = COUNTS[-1]
    # The collectives that must be ahead first.
    for program in ("all_reduce", "all_gather", "reduce_scatter", "alltoall"):
        args = ["-g", str(n), *SIZES, "-c", "1"]
        compare(r, "2", "%s, 1 process, %d GPUs, eager" % (program, n), run.perf(r, built, program, args, ours, "ours -g %d" % n, timeout=90), run.perf(r, built, program, args, theirs, "NVIDIA's -g %d" % n, timeout=90))
    small = ["-b", "8", "-e", "256M", "-f", "8", "-n", "20", "-w", "5", "-c", "1"]
    for label, extra in (("graph", ["-G", "10"]), ("registered", ["-R", "1"]), ("symmetric windows", ["-R", "2"])):
        args = ["-g", str(n), *small, *extra]
        compare(r, "2", "all_reduce, 1 process, %d GPUs, %s" % (n, label), run.perf(r, built, "all_reduce", args, ours, "ours " + label), run.perf(r, built, "all_reduce", args, theirs, "NVIDIA's " + label))
    if mpi:
        for program in ("all_reduce", "alltoall"):
            args = ["-g", "1", *small]
            compare(r, "2", "%s, %d processes" % (program, n), run.perf(r, mpi, program, args, ours, "ours -np", mpi=n), run.perf(r, mpi, program, args, theirs, "NVIDIA's -np", mpi=n))
    else:
        r.row("2", "one process for each GPU", "not run", "no mpi.h on this machine, or it does not build")
    for program in run.PROGRAMS:
        r.judge("2", "nccl-tests %s is right, %d GPUs" % (program, n), [run.perf(r, built, program, ["-g", str(n), "-b", "8", "-e", "64M", "-f", "16", "-n", "3", "-w", "1", "-c", "1"], ours, "right")])


def torch(r):
    if not COUNTS:
        r.row("2", "PyTorch over several GPUs", "not run", "%d GPUs" % GPUS)
        return
    n = COUNTS[-1]
    run.DEVICES["GCCL_DEVICES"] = str(n)
    for ranks, label in ((n, "one rank a GPU"), (2 * n, "two ranks a GPU")):
        r.judge("2", "PyTorch, every collective, " + label, [run.script(r, "collectives.py", [str(ranks)])])
        r.judge("2", "torch.cuda.graph, " + label, [run.script(r, "graph.py", [str(ranks)])])
        run.train_rows(r, (ranks,))


def faults(r):
    devices = dict(GCCL_TEST_DEVICES=str(max(GPUS, 1)))
    n = max(2, COUNTS[-1] if COUNTS else 2)
    for name, part, text, launches in (
        ("killed", "4", "a killed rank frees the others within 5 s with its name", ("procs",)), ("replayabort", "4", "abort during a captured replay", ("procs",)), ("zerocta", "3c", "data by copies of the driver", ("threads", "procs")),
        ("fill", "4", "kernels that fill the GPUs", ("threads", "procs", "group")), ("crossed", "4", "communicators in different order", ("threads", "procs", "group")),
        ("capture", "4", "graphs", ("threads", "procs", "group")), ("spin", "3b", "a kernel of each rank and one rank for all in turn", ("threads", "procs")),
        ("mixing", "3b", "a kernel of each rank: replays beside eager calls", ("threads", "procs")), ("waits", "3b", "a kernel of each rank: abort, revoke, a rank that leaves", ("procs",)),
    ):
        env = dict(devices, GCCL_CUDA_EXECUTOR="spin") if part == "3b" else devices
        r.judge(part, text + ", %d GPUs" % GPUS, [run.suite(r, "cuda", name, launch, n, 60, env) for launch in launches])
    for name in ("matrix", "groups", "streams", "windows", "onesided", "memory", "children", "ending"):
        r.judge("3", "host API, %s, %d GPUs" % (name, GPUS), [run.suite(r, "hostapi", name, launch, ranks, 60, devices) for launch in ("threads", "procs") for ranks in (n, n + 1)])


SECTIONS = dict(topology=topology, tests=tests, torch=torch, faults=faults)


def main():
    bad = False
    for name in sys.argv[1:] or list(SECTIONS):
        if name not in SECTIONS:
            sys.exit("run-multi.sh: no section %s; there are %s" % (name, ", ".join(SECTIONS)))
        bad |= gpulib.section("multi-" + name, SECONDS, SECTIONS[name])
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
