"""Programs of others that use the device API, unchanged: NCCL's docs/examples 06 and 07, nccl-tests' kernels (-D). None is part of this repository.
And NVSHMEM's times beside ours.

    GCCL_PEERS_EXAMPLES    folder docs/examples of NCCL's sources, 2.30
    GCCL_PEERS_NCCL_TESTS  folder of nccl-tests' sources, which know -D (2.17 and later)
    NVIDIA_HEADERS         folders with nccl.h and nccl_device.h, divided by ":"
    GCCL_PEERS             folder of what `python3 peers.py FOLDER` has built from them on another machine; else section peers builds them
    NVSHMEM_HOME           folder of NVSHMEM's include and lib, else the one that PyTorch brings
    NVCC, GCCL_MPI         the compiler, and a folder with MPI's include and lib, if they are not where they usually are

Each program is built once with each header: "ours", "22809", "23007"."""

import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import tempfile

import gpulib
from gpulib import BUNDLE, WORK, Mps

# name, folder under docs/examples, what it prints in the end, what else than LSA it needs
EXAMPLES = (
    ("allreduce_lsa", "06_device_api/01_allreduce_lsa", "verification: PASSED", ""),
    ("alltoall_gin", "06_device_api/02_alltoall_gin", "AlltoAll result: PASSED", "GIN"),
    ("alltoall_hybrid", "06_device_api/03_alltoall_hybrid", "AlltoAll result: PASSED", "GIN"),
    ("rmsnorm_lsa", "07_kernel_fusion/01_rmsnorm_lsa", "SUCCESS: Example completed", ""),
    ("rmsnorm_multimem", "07_kernel_fusion/02_rmsnorm_multimem", "SUCCESS: Example completed", "multicast"),
    ("rmsnorm_gin", "07_kernel_fusion/03_rmsnorm_gin", "SUCCESS: Example completed", "GIN"),
    ("rmsnorm_hybrid", "07_kernel_fusion/04_rmsnorm_hybrid", "SUCCESS: Example completed", "GIN"),
)
# program, -D, what it is, what else than LSA it needs
TESTS = (
    ("all_reduce", 1, "LSA", ""), ("all_reduce", 2, "LSA, vectors", ""), ("all_reduce", 3, "multimem", "multicast"), ("all_reduce", 4, "multimem, vectors", "multicast"),
    ("alltoall", 1, "LSA", ""), ("alltoall", 2, "LSA, vectors", ""), ("alltoall", 3, "GIN", "GIN"), ("alltoall", 4, "LSA and GIN", "GIN"),
)
# header, environment, how a row says it. Kernels of this header reach peers of a GPU by stores unless told; those of NVIDIA's always ask the proxy.
WAYS = (
    ("ours", {}, "our header"), ("ours", {"GCCL_GIN": "proxy"}, "our header, GIN by proxy"), ("23007", {}, "NVIDIA's header 2.30.7"), ("22809", {}, "NVIDIA's header 2.28.9"),
)
NO_MULTICAST = dict(NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1", NVSHMEM_DISABLE_NVLS="1")


def headers():
    """name → folder of nccl.h and nccl_device.h."""
    import run

    return dict([("ours", os.path.join(BUNDLE, "include"))] + run.foreign_headers())


# ---- Building ----------------------------------------------------------------------------------------------------


def nvcc():
    return os.environ.get("NVCC") or gpulib.output(["bash", "-c", "command -v nvcc || ls /usr/local/cuda/bin/nvcc"]).split("\n")[0]


def mpi():
    """Folder of MPI's include and lib."""
    for h in [os.environ.get("GCCL_MPI", "") + "/include/mpi.h"] + glob.glob("/usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h") + glob.glob("/opt/*/include/mpi.h"):
        if os.path.exists(h):
            return os.path.dirname(os.path.dirname(h))
    return None


def nvshmem():
    """Folder of NVSHMEM's include and lib, or None."""
    where = os.environ.get("NVSHMEM_HOME") or gpulib.output([sys.executable, "-c", "import importlib.util as u; print(list(u.find_spec('nvidia.nvshmem').submodule_search_locations)[0])"])
    return where if where and os.path.exists(where + "/lib/libnvshmem_host.so.3") else None


def build_nvshmem(out):
    """Device code is linked too, for libnvshmem_device.a."""
    return [nvcc(), "-rdc=true", "-arch=sm_90", "-std=c++17", "-O3", "--cudart", "shared", "-I" + nvshmem() + "/include", BUNDLE + "/nvshmem_speed.cu", "-o", out, "-L" + nvshmem() + "/lib",
            "-l:libnvshmem_host.so.3", "-lnvshmem_device", "-lpthread", "-ldl", "-L" + os.path.dirname(os.path.dirname(nvcc())) + "/lib64", "-Xlinker", "--unresolved-symbols=ignore-in-shared-libs"]


def build_example(out, name, header, lib):
    examples, cuda = os.environ["GCCL_PEERS_EXAMPLES"], os.path.dirname(os.path.dirname(nvcc()))
    folder = os.path.join(examples, [e[1] for e in EXAMPLES if e[0] == name][0], "c")
    include = ["-I" + header, "-I" + examples + "/common/include", "-I" + os.path.dirname(os.path.dirname(folder)) + "/include", "-I" + mpi() + "/include"]
    # As their Makefiles do with MPI=1, but for one architecture and with C++17, which CUDA 13's libcu++ asks for.
    return [nvcc(), "-arch=sm_90", "-std=c++17", "-O3", "-DMPI_SUPPORT", "-DOMPI_SKIP_MPICXX", "--cudart", "shared", *include, folder + "/main.cu", examples + "/common/src/utils.cc", "-o", os.path.join(out, name),
            "-L" + lib, "-l:libnccl.so.2", "-L" + cuda + "/lib64", "-L" + mpi() + "/lib", "-lmpi", "-Xlinker", "--unresolved-symbols=ignore-in-shared-libs"]


def build_tests(out, header, lib):
    home = os.path.join(out, "home")
    os.makedirs(home, exist_ok=True)
    for link, to in (("include", header), ("lib", lib)):
        if not os.path.lexists(os.path.join(home, link)):
            os.symlink(to, os.path.join(home, link))
    src = os.path.join(out, "src")  # a copy for each header: their Makefile writes beside the sources
    subprocess.run(["cp", "-r", os.environ["GCCL_PEERS_NCCL_TESTS"], src], check=True)
    return ["make", "-C", src + "/src", "MPI=1", "MPI_HOME=" + mpi(), "NCCL_HOME=" + home, "CUDA_HOME=" + os.path.dirname(os.path.dirname(nvcc())), "CXXSTD=-std=c++17",
            "NVCC=" + nvcc() + " -Xlinker --unresolved-symbols=ignore-in-shared-libs", "NVCC_GENCODE=-gencode=arch=compute_90,code=sm_90", "BUILDDIR=" + out + "/build",
            "os.build", out + "/build/all_reduce_perf", out + "/build/alltoall_perf"]


def build(folder, lib, jobs):
    """Builds what there are sources for. Returns name/program → the end of what the compiler said, for those that do not build."""
    work, failed = tempfile.mkdtemp(prefix="gccl-peers-"), {}

    def one(header, name, argv, files):
        p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print("%-7s %-18s %s" % (header, name, "built" if p.returncode == 0 else "does not build\n" + p.stdout[-3000:]), flush=True)
        for program, built in files:
            if p.returncode == 0:
                subprocess.run(["strip", "-o", os.path.join(folder, header, program), built], check=True)
            else:
                failed[header + "/" + program] = [x for x in p.stdout.splitlines() if "rror" in x][:1] or ["no reason"]

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        todo = []
        if nvshmem():
            os.makedirs(os.path.join(folder, "nvshmem"), exist_ok=True)
            todo.append(pool.submit(one, "nvshmem", "nvshmem_speed", build_nvshmem(work + "/nvshmem_speed"), [("nvshmem_speed", work + "/nvshmem_speed")]))
        for header, include in headers().items():
            os.makedirs(os.path.join(folder, header), exist_ok=True)
            out = os.path.join(work, header)
            os.makedirs(out)
            if os.environ.get("GCCL_PEERS_NCCL_TESTS"):
                todo.append(pool.submit(one, header, "nccl-tests", build_tests(out, include, lib), [(p + "_perf", out + "/build/" + p + "_perf") for p in ("all_reduce", "alltoall")]))
            if os.environ.get("GCCL_PEERS_EXAMPLES") and header != "22809":  # the examples need functions of 2.29
                todo += [pool.submit(one, header, e[0], build_example(out, e[0], include, lib), [(e[0], os.path.join(out, e[0]))]) for e in EXAMPLES]
        for t in todo:
            t.result()
    subprocess.run(["rm", "-rf", work])
    return failed


# ---- Running -----------------------------------------------------------------------------------------------------


def cudart(env):
    """With the toolkit's libcudart.so for the loader, or the one beside the programs."""
    folders = [env.get("LD_LIBRARY_PATH", ""), os.path.dirname(os.path.dirname(nvcc())) + "/lib64" if nvcc() else "", os.environ.get("GCCL_PEERS", "") + "/lib"]
    return dict(env, LD_LIBRARY_PATH=":".join(f for f in folders if f))


def ranks(r, n, argv, env, name, timeout=40):
    """n processes by mpirun, all on the first GPU. Kernels are loaded beforehand: loading waits for kernels that run, which wait for other ranks."""
    env = cudart(dict(r.ours(**env), ONEDEVICE_COUNT=str(n), CUDA_MODULE_LOADING="EAGER", CUDA_DEVICE_MAX_CONNECTIONS="32" if n <= 2 else "8", NCCL_DEBUG="WARN", **NO_MULTICAST))
    launch = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(n), "--mca", "btl", "self,vader,tcp", "-x", "LD_PRELOAD=" + BUNDLE + "/lib/onedevice.so"]
    return r.step(name, launch + argv, timeout, env)


def refused(x):
    """A program that needs multicast must say that there is none, and not come to results."""
    if x is not None:
        # Programs of 2.28 cannot ask beforehand: ncclDevCommCreate refuses them.
        told = re.search(r"(?i)not (support|enabled).*multi|multi.*(not |no )(support|enabled)|lsaMultimem|failure common.cu.*'invalid argument", x.text)
        x.ok = not x.late and bool(told) and "SUCCESS" not in x.text and "Avg bus bandwidth" not in x.text
        x.code = x.code if x.ok else "%s: not refused for want of multicast" % x.code
    return x


def example(r, argv, header, env, n, told, needs):
    x = ranks(r, n, argv, env, "example %s %s%s %d" % (os.path.basename(argv[0]), header, env.get("GCCL_GIN", ""), n))
    if needs == "multicast":
        return refused(x)
    if x is not None and x.ok and (told not in x.text or "FAILED" in x.text or "ERROR" in x.text):
        x.ok, x.code = False, "it did not print '%s'" % told
    return x


def kernels(r, argv, header, env, n, which, needs):
    argv = argv + ["-g", "1", "-b", "8", "-e", "1M", "-f", "8", "-n", "5", "-w", "1", "-c", "1", "-R", "2", "-D", str(which)]
    if header == "22809":  # nccl-tests compiled with 2.28 refuse a newer library, whose device API is another: this library speaks that of the program's header
        env = dict(env, ONEDEVICE_NCCL_VERSION=header)
    x = ranks(r, n, argv, env, "%s -D %d %s%s %d" % (os.path.basename(argv[0]), which, header, env.get("GCCL_GIN", ""), n))
    if needs == "multicast":
        return refused(x)
    if x is not None and x.ok and gpulib.wrong(x.text):
        x.ok, x.code = False, "wrong values or no table"
    return x


def peers(r):
    folder, failed = os.environ.get("GCCL_PEERS"), {}
    if not folder and (os.environ.get("GCCL_PEERS_EXAMPLES") or os.environ.get("GCCL_PEERS_NCCL_TESTS")):
        if not (nvcc() and mpi()):
            return r.row("peers", "programs that use the device API", "not run", "no nvcc or no mpi.h on this machine, and GCCL_PEERS names no folder of built ones")
        folder = os.path.join(WORK, "peers")
        failed = build(folder, r.lib, 16)
    if not folder:
        return r.row("peers", "programs that use the device API", "not run", "none of GCCL_PEERS, GCCL_PEERS_EXAMPLES, GCCL_PEERS_NCCL_TESTS names a folder")
    if not gpulib.output(["bash", "-c", "command -v mpirun"]):
        return r.row("peers", "programs that use the device API", "not run", "no mpirun")

    def each(n, program, name, needs, start):
        """A row for each header; start runs it."""
        if needs == "multicast" and n > 2:
            return
        for header, env, how in WAYS:
            if env and (needs != "GIN" or n > 2) or header == "22809" and not program.endswith("_perf"):  # the examples need functions of 2.29
                continue
            where, file = "%s%s, %s, %d processes" % (name, ", refused: no multicast" if needs == "multicast" else "", how, n), os.path.join(folder, header, program)
            if header + "/" + program in failed:
                r.row("peers", where, "fail", "it does not build: " + failed[header + "/" + program][0][:200])
            elif not os.path.exists(file):
                r.row("peers", where, "not run", "there is no " + file)
            else:
                r.judge("peers", where, [start([file], header, env)])

    for n in (2, 4):
        # Without MPS: the grids of 07 fill a GPU and wait for other ranks' grids, which come to run because processes take turns.
        for name, _, told, needs in EXAMPLES:
            each(n, name, "example " + name, needs, lambda argv, header, env: example(r, argv, header, env, n, told, needs))
        with Mps(r) as mps:
            for program, which, what, needs in TESTS:
                each(n, program + "_perf", "nccl-tests %s -D %d (%s)%s" % (program, which, what, ", MPS" if mps else ""), needs,
                     lambda argv, header, env: kernels(r, argv, header, dict(env, **(mps.env if mps else {})), n, which, needs))


# ---- NVSHMEM beside our times ------------------------------------------------------------------------------------


def nvshmem_speed(r):
    """Two processes on the GPU, each with half of it: NVSHMEM lets kernels of two PEs wait for each other only so."""
    import run

    folder, name, built = os.environ.get("GCCL_PEERS"), "NVSHMEM, and ours in the same run", os.path.join(WORK, "peers", "nvshmem", "nvshmem_speed")
    if not nvshmem():
        return r.row("NVSHMEM", name, "not run", "no libnvshmem_host.so.3: PyTorch brings none, and NVSHMEM_HOME names no folder with it")
    if folder and os.path.exists(folder + "/nvshmem/nvshmem_speed"):
        built = folder + "/nvshmem/nvshmem_speed"
    elif not nvcc():
        return r.row("NVSHMEM", name, "not run", "no nvcc, and GCCL_PEERS names no folder with a built one")
    else:
        os.makedirs(os.path.dirname(built), exist_ok=True)
        x = r.step("build nvshmem_speed", build_nvshmem(built), 100)
        if x is None or not x.ok:
            return r.row("NVSHMEM", name, "not run", "nvshmem_speed does not build: " + (x.why() if x else "no time"))
    with Mps(r) as mps:
        if mps is None:
            return r.row("NVSHMEM", name, "not run", "nvidia-cuda-mps-control does not start")
        env = dict(mps.env, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="50", CUDA_MODULE_LOADING="EAGER", **NO_MULTICAST)
        theirs = cudart(dict(os.environ, **env, NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME="lo", NVSHMEM_REMOTE_TRANSPORT="none", LD_LIBRARY_PATH=nvshmem() + "/lib:" + os.environ.get("LD_LIBRARY_PATH", "")))
        times = [("NVSHMEM: ", r.step("nvshmem_speed", [built], 60, theirs)), ("", run.lsa(r, "speed", "procs", 2, env, " mps 50"))]
        times += [(b + ": ", run.gin(r, 2, "speed", env=dict(env, GCCL_GIN=b), label=" mps 50 " + b, procs=True)) for b in ("direct", "proxy")]
    r.judge("NVSHMEM", name, [x for _, x in times])
    for what, x in times:
        run.times(r, "NVSHMEM", what, x)


# ---- compute-sanitizer -------------------------------------------------------------------------------------------


def memcheck(r):
    import run

    found = gpulib.output(["bash", "-c", "command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer"]).splitlines()
    if not found or not run.cubins():
        return r.row("memcheck", "compute-sanitizer memcheck over kernels of the device API", "not run", "no compute-sanitizer" if not found else "no kernels in the bundle")
    under = [found[0], "--tool", "memcheck", "--error-exitcode", "9", "--target-processes", "all"]
    for n, launch in ((1, "threads"), (2, "procs")):
        for name in ("coops", "reduce", "pointers", "barriers", "a2a", "allreduce") if n == 1 else ("pointers", "barriers", "a2a", "allreduce"):
            r.judge("memcheck", "tests/device %s, %d ranks" % (name, n), [run.lsa(r, name, launch, n, label=" memcheck", under=under, timeout=40)])
        few = dict(GCCL_TEST_SIGNALS="10", GCCL_TEST_PUTS="40", GCCL_TEST_SOAK="40")
        r.judge("memcheck", "tests/devgin, direct, %d ranks" % n, [run.gin(r, n, env=few, label=" memcheck", under=under, timeout=60, procs=n > 1)])


def more(r):
    """PyTorch, NVSHMEM, compute-sanitizer."""
    import run

    if gpulib.output([sys.executable, "-c", "import torch; print(torch.cuda.is_available())"]).endswith("True"):
        for which, text in (("one_sided", "nccl_put, nccl_get, put with signal, peers' addresses"), ("reductions", "one-shot and two-shot all-reduce over windows of NCCL")):
            r.judge("torch", "symmetric memory, backend NCCL: %s, 2 ranks" % text, [run.script(r, "symmetric.py", ["2", which], 70)])
    else:
        r.row("torch", "symmetric memory, backend NCCL", "not run", "no PyTorch that sees a GPU")
    nvshmem_speed(r)
    memcheck(r)


SECTIONS = {"peers": peers, "peers-more": more}
SECONDS = {"peers": 300, "peers-more": 170}


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    sys.exit(bool(build(os.path.abspath(sys.argv[1]), os.path.abspath(os.environ.get("GCCL_LIB", os.path.join(BUNDLE, "lib"))), int(os.environ.get("JOBS", "2")))))
