"""NVIDIA's NCCL over our network and over its own sockets, in one run. Ranks share a GPU and are made remote by different NCCL_HOSTID.

  python3 nccl_net.py LIBNCCL PLUGIN OUT.json [ROUNDS]

Ranks that share a GPU need MPS for figures that mean something (without it each step takes a time slice): see run.py. With 0 rounds only
results are checked. Contenders alternate, a round is a run of processes of its own. Every result is checked before the first timed call. The last lines are a
table and whether it is as asked. A rank is this script again with GCCL_NET_RANK set."""

import array
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

DEADLINE = float(os.environ.get("GCCL_NET_DEADLINE", "25"))  # seconds of one round
BUDGET = float(os.environ.get("GCCL_NET_BUDGET", "100"))  # seconds of all: no round begins that would not fit
MOST = int(os.environ.get("GCCL_NET_MAX", str(64 << 20)))  # largest size
SIZES = [n for n in (8, 256, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20) if n <= MOST]
LATENCY, BANDWIDTH = 4 << 10, 1 << 20  # up to here latency counts, from here bandwidth
MARK = os.environ.get("GCCL_NET_MARK", "via NET/%s/")  # what NCCL's log says: "Channel 00/0 : 0[0] -> 1[0] [send] via NET/GCCL/0"
FLOAT, SUM = 7, 0  # ncclFloat32, ncclSum
PATTERN = 1 << 16  # bytes after which the data repeats


def told(what, code, text=None):
    if code:
        raise SystemExit("rank %s: %s: error %d%s" % (os.environ.get("GCCL_NET_RANK"), what, code, ": " + text if text else ""))


class Device:
    """Memory, a stream and copies by the driver; NCCL uses the context that is current."""

    def __init__(self):
        self.lib = ctypes.CDLL(os.environ.get("GCCL_NET_DRIVER", "libcuda.so.1"))
        dev, ctx = ctypes.c_int(), ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDeviceGet", ctypes.byref(dev), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(ctx), dev)
        self("cuCtxSetCurrent", ctx)
        self.stream = ctypes.c_void_p()
        self("cuStreamCreate", ctypes.byref(self.stream), 1)

    def __call__(self, name, *args):
        told(name, getattr(self.lib, name)(*args))

    def memory(self, n):
        p = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(p), ctypes.c_size_t(n))
        return p.value

    def write(self, at, data):
        self("cuMemcpyHtoD_v2", ctypes.c_uint64(at), data, ctypes.c_size_t(len(data)))

    def read(self, at, n):
        data = ctypes.create_string_buffer(n)
        self("cuMemcpyDtoH_v2", data, ctypes.c_uint64(at), ctypes.c_size_t(n))
        return data.raw

    def wait(self):
        self("cuStreamSynchronize", self.stream)


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


class Rank:
    def __init__(self, path, rank, n, way):
        self.rank, self.n, self.dev = rank, n, Device()
        self.lib = ctypes.CDLL(path)
        self.lib.ncclGetErrorString.restype = self.lib.ncclGetLastError.restype = ctypes.c_char_p
        uid, self.comm = UniqueId(), ctypes.c_void_p()
        file = os.path.join(way, "id")
        if rank == 0:
            self("ncclGetUniqueId", ctypes.byref(uid))
            with open(file + ".new", "wb") as f:
                f.write(bytes(uid))
            os.rename(file + ".new", file)
        end = time.time() + DEADLINE
        while not os.path.exists(file):
            if time.time() > end:
                raise SystemExit("rank %d: rank 0 has made no id" % rank)
            time.sleep(0.01)
        with open(file, "rb") as f:
            ctypes.memmove(ctypes.byref(uid), f.read(), 128)
        self("ncclCommInitRank", ctypes.byref(self.comm), n, uid, rank)
        self.a, self.b = (self.dev.memory(max(SIZES) * (n if n > 2 else 1)) for _ in range(2))

    def __call__(self, name, *args):
        told(name, getattr(self.lib, name)(*args), (self.lib.ncclGetLastError(None) or b"").decode(errors="replace"))

    def mem(self, at, off=0):
        return ctypes.c_void_p(at + off)

    def all_reduce(self, n):
        self("ncclAllReduce", self.mem(self.a), self.mem(self.b), ctypes.c_size_t(n // 4), FLOAT, SUM, self.comm, self.dev.stream)

    def send(self, n, peer):
        self("ncclSend", self.mem(self.a), ctypes.c_size_t(n // 4), FLOAT, peer, self.comm, self.dev.stream)

    def recv(self, n, peer):
        self("ncclRecv", self.mem(self.b), ctypes.c_size_t(n // 4), FLOAT, peer, self.comm, self.dev.stream)

    def exchange(self, n):
        """Both ways at once."""
        self("ncclGroupStart")
        self.send(n, 1 - self.rank)
        self.recv(n, 1 - self.rank)
        self("ncclGroupEnd")

    def one_way(self, n):
        (self.send if self.rank == 0 else self.recv)(n, 1 - self.rank)

    def ping(self, n):
        for first in (0, 1):
            (self.send if self.rank == first else self.recv)(n, 1 - self.rank)

    def all_to_all(self, n):
        self("ncclGroupStart")
        for p in range(self.n):
            for name, at in (("ncclSend", self.a), ("ncclRecv", self.b)):
                self(name, self.mem(at, p * n), ctypes.c_size_t(n // 4), FLOAT, p, self.comm, self.dev.stream)
        self("ncclGroupEnd")

    def all_gather(self, n):
        self("ncclAllGather", self.mem(self.a), self.mem(self.b), ctypes.c_size_t(n // 4), FLOAT, self.comm, self.dev.stream)

    def check(self, what, n, want):
        self.dev.wait()
        got = self.dev.read(self.b, len(want))
        if got != want:
            bad = next(i for i in range(len(want)) if got[i] != want[i])
            raise SystemExit("rank %d: %s of %d bytes: byte %d is %d, want %d" % (self.rank, what, n, bad, got[bad], want[bad]))


def data(n, f):
    """n bytes of whole float numbers, so that sums are exact."""
    block = array.array("f", [f(i % 251) for i in range(PATTERN // 4)]).tobytes()
    return (block * (n // PATTERN + 1))[:n]


def mine(r, salt=0):
    return lambda i: float(i * (r + 1) + salt)


def correct(r):
    """Every pattern at every size, and sizes that are no power of two."""
    for n in SIZES + [s for s in (12, 1004, 70004, 1000004) if s <= MOST]:
        r.dev.write(r.a, data(n, mine(r.rank)))
        r.dev.write(r.b, bytes(n))
        r.all_reduce(n)
        r.check("all_reduce", n, data(n, lambda i: sum(mine(p)(i) for p in range(r.n))))
        if r.n == 2:
            for what, call in (("exchange", r.exchange), ("ping", r.ping)):
                r.dev.write(r.b, bytes(n))
                call(n)
                r.check(what, n, data(n, mine(1 - r.rank)))
            continue
        if n > 4 << 20:
            continue
        r.dev.write(r.a, b"".join(data(n, mine(r.rank, 1000 * p)) for p in range(r.n)))
        r.all_to_all(n)
        r.check("all to all", n, b"".join(data(n, mine(p, 1000 * r.rank)) for p in range(r.n)))
        r.all_gather(n)
        r.check("all_gather", n, b"".join(data(n, mine(p)) for p in range(r.n)))


def timed(r):
    for what, call, share, sizes in (("ping (half)", r.ping, 0.5, [n for n in SIZES if n <= 1 << 20]), ("one way", r.one_way, 1, [n for n in SIZES if n >= 32 << 10]),
                                     ("both ways", r.exchange, 1, SIZES), ("all_reduce", r.all_reduce, 1, SIZES)):
        for n in sizes:
            count = max(5, min(200, (32 << 20) // n))
            for k in range(2):  # the first time to warm up
                start = time.perf_counter()
                for _ in range(count if k else 3):
                    call(n)
                r.dev.wait()
            if r.rank == 0:
                print("TIME " + json.dumps(dict(what=what, bytes=n, us=(time.perf_counter() - start) / count * 1e6 * share)), flush=True)


def rank_main():
    r = Rank(os.environ["GCCL_NET_LIB"], int(os.environ["GCCL_NET_RANK"]), int(os.environ["GCCL_NET_SIZE"]), os.environ["GCCL_NET_WAY"])
    if os.environ.get("GCCL_NET_CHECK"):
        correct(r)
    else:
        timed(r)
    r.dev.wait()
    r("ncclCommDestroy", r.comm)
    with open("/proc/self/maps") as f:
        files = sorted({os.path.basename(x.split()[-1]) for x in f if "nccl" in x.split()[-1]})
    print("rank %d: ok, libraries %s" % (r.rank, ", ".join(files)), flush=True)


NETWORKS = {"GCCL": "ours", "Socket": "NCCL's sockets"}


def one(nccl, plugin, net, ranks, check):
    """One run of all ranks. Returns (times, error)."""
    with tempfile.TemporaryDirectory() as way:
        procs = []
        for r in range(ranks):
            env = dict(os.environ, GCCL_NET_LIB=nccl, GCCL_NET_RANK=str(r), GCCL_NET_SIZE=str(ranks), GCCL_NET_WAY=way, GCCL_NET_CHECK="1" if check else "",
                       NCCL_HOSTID="host%d" % r, NCCL_NET=net, NCCL_NET_PLUGIN=plugin if net == "GCCL" else "none", NCCL_SOCKET_IFNAME=os.environ.get("NCCL_SOCKET_IFNAME", "lo"),
                       NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET", NCCL_DEBUG_FILE=os.path.join(way, "log%d" % r), NCCL_NVLS_ENABLE="0",
                       LD_LIBRARY_PATH=os.path.dirname(nccl) + ":" + os.environ.get("LD_LIBRARY_PATH", ""))
            if ranks > 2:
                env["NCCL_MAX_CTAS"] = str(16 // ranks)  # all ranks' kernels have to be on the GPU at once
            with open(os.path.join(way, "out%d" % r), "wb") as out:
                procs.append(subprocess.Popen([sys.executable, os.path.abspath(__file__)], env=env, stdout=out, stderr=subprocess.STDOUT))
        end, error = time.time() + DEADLINE, None
        while any(p.poll() is None for p in procs) and not error:
            if time.time() > end:
                error = "no end after %.0f s of ranks %s" % (DEADLINE, [i for i, p in enumerate(procs) if p.poll() is None])
            elif any(p.poll() for p in procs):
                time.sleep(0.5)  # what the others have to say
                break
            time.sleep(0.01)
        for p in procs:
            if p.poll() is None:
                p.kill()
            p.wait()
        texts, logs = [], []
        for r in range(ranks):
            for kind, to in (("out", texts), ("log", logs)):
                try:
                    with open(os.path.join(way, kind + str(r)), errors="replace") as f:
                        to.append(f.read())
                except OSError:
                    to.append("")
        bad = [r for r, p in enumerate(procs) if p.returncode]
        if error or bad:
            tail = [x for r in (bad or range(ranks)) for x in (texts[r].splitlines() + [y for y in logs[r].splitlines() if "WARN" in y])[-3:]]
            return {}, (error or "ranks %s ended with codes %s" % (bad, [procs[r].returncode for r in bad])) + ": " + " | ".join(tail)[-600:]
        if any((MARK.replace("%s", net)) not in log for log in logs):
            return {}, "NCCL's log does not say that the ranks are joined by %s: %s" % (net, [x for x in logs[0].splitlines() if "NET" in x][-4:])
        if any(("libnccl-net-gccl" in text) != (net == "GCCL") for text in texts):
            return {}, "the plugin is not what a rank has loaded: %s" % texts[0].splitlines()[-1:]
        return {(j["what"], j["bytes"]): j["us"] for j in (json.loads(x[5:]) for x in texts[0].splitlines() if x.startswith("TIME "))}, None


def main():
    nccl, plugin, out, rounds = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3], int((sys.argv[4:] or ["5"])[0])
    rows, bad, start = [], [], time.time()
    for ranks in (2, 4):
        for net in NETWORKS:
            _, error = one(nccl, plugin, net, ranks, True)
            print("%d ranks over %s: every result %s" % (ranks, NETWORKS[net], "right" if not error else "NOT as wanted: " + error), flush=True)
            rows.append(dict(check=NETWORKS[net], ranks=ranks, ok=not error, error=error))
            if error and net == "GCCL":
                bad.append("results of %d ranks" % ranks)
    got = {net: {} for net in NETWORKS}
    for k in range(rounds):
        if k and time.time() - start > BUDGET * k / (k + 1):
            print("no time for round %d" % (k + 1))
            break
        for net in list(NETWORKS)[:: 1 if k % 2 == 0 else -1]:
            times, error = one(nccl, plugin, net, 2, False)
            print("round %d, %s: %s" % (k + 1, NETWORKS[net], error or "%d figures" % len(times)), flush=True)
            for key, us in times.items():
                got[net].setdefault(key, []).append(us)
    keys = [k for k in got["GCCL"] if k in got["Socket"]]
    print("\n| | bytes | ours, µs | NCCL's sockets, µs | times faster | ours, GB/s | spread |\n| --- | --- | --- | --- | --- | --- | --- |")
    behind_latency, behind_bandwidth = [], []
    for what, n in keys:
        a, b = (statistics.median(got[net][what, n]) for net in ("GCCL", "Socket"))
        spread = [round((max(v) - min(v)) / statistics.median(v) * 100) for v in (got["GCCL"][what, n], got["Socket"][what, n])]
        print("| %s | %d | %.1f | %.1f | %.2f | %.2f | %d %%, %d %% |" % (what, n, a, b, b / a, n / a / 1e3, *spread))
        rows.append(dict(what=what, bytes=n, ours_us=a, sockets_us=b, ratio=b / a, rounds=[got[net][what, n] for net in ("GCCL", "Socket")]))
        if n <= LATENCY and b / a < 1:
            behind_latency.append("%s %d B %.2f" % (what, n, b / a))
        if n >= BANDWIDTH and b / a < 1.3:
            behind_bandwidth.append("%s %d B %.2f" % (what, n, b / a))
    if rounds and not keys:
        bad.append("no figures")
    verdict = dict(latency=not behind_latency and bool(keys), bandwidth=not behind_bandwidth and bool(keys), behind=behind_latency + behind_bandwidth, bad=bad)
    print("\nlatency up to %d B at least equal: %s; bandwidth from %d B at least 1.3 times: %s" % (LATENCY, behind_latency or "yes", BANDWIDTH, behind_bandwidth or "yes") if keys else "\nno figures")
    with open(out, "w") as f:
        json.dump(dict(nccl=nccl, sizes=SIZES, rounds=rounds, verdict=verdict, rows=rows), f, indent=1)
    print("VERDICT " + json.dumps(verdict))
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(rank_main() if "GCCL_NET_RANK" in os.environ else main())
