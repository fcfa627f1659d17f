"""Sections of run.py about what is around the library: the network for NVIDIA's NCCL."""

import json
import os
import signal
import subprocess
import sys
import time

import gpulib
from gpulib import BUNDLE, OUT, Mps

SECONDS = dict(net=118, python=280, tools=60)  # of sections that are shorter than others


def compared(r, x, path):
    """Rows of nccl_net.py's verdict."""
    try:
        with open(path) as f:
            j = json.load(f)
    except (OSError, ValueError):
        return r.row("F6", "NVIDIA's NCCL over our network", "fail" if x else "not run", x.why() if x else "no time")
    for c in (c for c in j["rows"] if "check" in c):
        r.row("F6", "NCCL over %s, %d ranks as so many hosts: every result" % (c["check"], c["ranks"]), "pass" if c["ok"] else "fail", c["error"] or "")
    figures = [c for c in j["rows"] if "what" in c]
    for name, text in (("latency", "latency up to 4 KiB at least equal to NCCL's sockets"), ("bandwidth", "bandwidth from 1 MiB at least 1.3 times NCCL's sockets")):
        if figures:
            r.row("F6", text, "pass" if j["verdict"][name] else "fail", "behind: " + "; ".join(j["verdict"]["behind"])[:200] if not j["verdict"][name] else "")
        else:
            r.row("F6", text, "not run", "no figures")
    if x is None or not x.ok:
        r.row("F6", "the script comes to its end", "fail", x.why() if x else "no time")
    for c in figures:
        print("%-12s %9d B  ours %9.1f µs  NCCL's sockets %9.1f µs  %.2f times" % (c["what"], c["bytes"], c["ours_us"], c["sockets_us"], c["ratio"]))


def net(r):
    plugin = os.path.join(BUNDLE, "lib", "libnccl-net-gccl.so")
    x = r.step("netspeed", [BUNDLE + "/bin/netspeed", plugin, "7"], 25, dict(os.environ, NCCL_SOCKET_IFNAME="lo"))
    if x:
        print(x.text)
    r.judge("F6", "the plugin called as NCCL does, beside plain TCP (log/netspeed.txt)", [x])
    nvidia = gpulib.nvidia_nccl()
    if not nvidia:
        return r.row("F6", "NVIDIA's NCCL over our network", "not run", "PyTorch brings no NCCL")
    out = os.path.join(OUT, "nccl-net.json")
    if os.path.exists(out):
        os.remove(out)
    with Mps(r) as mps:
        # Without MPS each step of NCCL's kernels waits for a time slice: results only.
        x = r.step("nccl_net", [sys.executable, BUNDLE + "/nccl_net.py", nvidia + "/lib/libnccl.so.2", plugin, out, "5" if mps else "0"], 110,
                   dict(os.environ, **(mps.env if mps else {})))
    compared(r, x, out)
    if x:
        print(x.text)


def python(r):
    """The package and its backend for PyTorch with buffers on the GPU; ranks share it as processes."""
    import run

    tests = os.path.join(BUNDLE, "python", "tests")
    if not gpulib.output([sys.executable, "-c", "import numpy; print(1)"]):
        return r.row("G", "the Python package", "not run", "no numpy")

    def package(n, store):
        return r.step("package %d %s" % (n, store), [sys.executable, tests + "/cuda_ranks.py", str(n), store], 60, r.python(NCCL_DEBUG="WARN"))

    for n in (2, 4):
        r.judge("G", "package on memory of the driver: op x type against numpy, messages, windows, %d ranks" % n, [package(n, "driver")])
        r.judge("G", "package on torch CUDA tensors, also its current stream, %d ranks" % n, [package(n, "torch")])
        r.judge("G", "backend gccl on CUDA tensors: collectives, messages, asynchronous, coalesced, objects, %d ranks" % n, [run.script(r, "backend.py", [str(n), "gccl"], 60)])
        r.judge("G", "backend gccl, the collectives of section torch, %d ranks" % n, [run.script(r, "collectives.py", [str(n), "gccl"], 60)])
        r.judge("G", "backend nccl under LD_PRELOAD: asynchronous, objects, groups, coalesced, %d ranks" % n, [run.script(r, "backend.py", [str(n), "nccl"], 60)])
    run.train_rows(r, (2, 4), "gccl", "G")
    if gpulib.output([sys.executable, "-c", "import cupy; print(1)"]):
        example = os.path.join(BUNDLE, "examples", "python", "06_device_api.py")
        r.judge("G", "a kernel of CuPy that communicates (examples/python/06_device_api.py)", [r.step("device_api", [sys.executable, example, "cuda"], 60, r.python())])
    else:
        r.row("G", "a kernel of CuPy that communicates", "not run", "cupy is not installed")


# Three ranks of a process that reduce while gccl-top looks.
AT_WORK = """
import time, gccl
from cuda_driver import DriverStore
s = DriverStore()
comms = gccl.Communicator.init_all([0, 0, 0], device="cuda")
xs = [s.put([1.0] * 1000, "float32") for c in comms]
end = time.time() + 30
while time.time() < end:
    with gccl.group():
        for c, x in zip(comms, xs):
            c.allreduce(x, **s.stream)
    s.driver.synchronize()
"""


def tools(r):
    """gccl-doctor, gccl-info and gccl-top; what they print is for the eye."""
    for name, argv, codes in (
        ("gccl-doctor", [BUNDLE + "/bin/gccl-doctor"], (0, 1)),  # 1: it has found something to repair
        ("gccl-doctor as JSON", [BUNDLE + "/bin/gccl-doctor", "--json"], (0, 1)),
        ("gccl-info", [BUNDLE + "/bin/gccl-info"], (0,)),
        ("gccl-info --run", [BUNDLE + "/bin/gccl-info", "--run"], (0,)),
        ("gccl-topo show", [BUNDLE + "/bin/gccl-topo", "show"], (0,)),
    ):
        shown(r, name, r.step(name, argv, 20), codes)
    work = subprocess.Popen([sys.executable, "-c", AT_WORK], env=r.python(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        seen = None
        for _ in range(10):  # until they have a communicator
            seen = r.step("gccl-top", [BUNDLE + "/bin/gccl-top", "--once"], 10)
            if seen is None or not seen.ok or "rank" in seen.text:
                break
            time.sleep(0.5)
    finally:
        os.killpg(work.pid, signal.SIGKILL)
        work.wait()
    shown(r, "gccl-top beside three ranks at work", seen, (0,), "rank")


def shown(r, name, x, codes, needs=""):
    """Prints the output of a tool; its row says whether there is some."""
    if x is None:
        return r.row("G", name, "not run", "no time")
    print("\n---- %s, code %s\n%s" % (name, x.code, x.text))
    good = not x.late and x.code in codes and x.text.strip() and needs in x.text
    r.row("G", name + ": to be looked at", "pass" if good else "fail", "code %s, %d lines" % (x.code, len(x.text.splitlines())))


SECTIONS = dict(net=net, python=python, tools=tools)
