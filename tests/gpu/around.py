"""Sections of run.py about what is around the library: the network for NVIDIA's NCCL."""

import json
import os
import sys

import gpulib
from gpulib import BUNDLE, OUT, Mps

SECONDS = dict(net=118)  # of sections that are shorter than others


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


SECTIONS = dict(net=net)
