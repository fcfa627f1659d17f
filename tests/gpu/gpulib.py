"""What run.py and multi.py share: steps with a deadline, rows, the table. Every step goes on after a failure."""

import glob
import json
import lzma
import os
import signal
import subprocess
import sys
import time
import traceback

BUNDLE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.abspath(os.environ.get("OUT", "out"))
WORK = os.environ.get("GCCL_WORK", "/tmp/gccl-gpu")


class Result:
    def __init__(self, code, text, seconds, late):
        self.code, self.text, self.seconds, self.late = code, text, seconds, late
        self.ok = code == 0 and not late

    def why(self):
        """The most telling line of a failure."""
        lines = [x for x in self.text.splitlines() if x.strip()]
        told = [x for x in lines if x.startswith("not ok") or "rror:" in x or "want" in x or "did not" in x or " ended with code" in x] or lines[-1:]
        head = "no end after %.0f s; " % self.seconds if self.late else "code %s; " % self.code
        return (head + (told[0] if told else "no output"))[:300]


class Report:
    """One section: its rows, its time, its files."""

    def __init__(self, name, seconds):
        self.name, self.rows, self.start, self.seconds = name, [], time.time(), seconds
        os.makedirs(os.path.join(OUT, "log"), exist_ok=True)
        os.makedirs(WORK, exist_ok=True)
        self.environment = dict(os.environ)
        lib = os.path.join(WORK, "lib")
        os.makedirs(lib, exist_ok=True)
        for source, names in (("libgccl.so", ("libgccl.so", "libnccl.so", "libnccl.so.2")), ("libgccl_core.so", ("libgccl_core.so",)), ("libgccl_cpu.so", ("libgccl_cpu.so",))):
            for n in names:  # links do not always travel
                link = os.path.join(lib, n)
                if os.path.lexists(link):
                    os.remove(link)
                os.symlink(os.path.join(BUNDLE, "lib", source), link)
        self.lib = lib

    def left(self):
        return self.seconds - (time.time() - self.start)

    def ours(self, **more):
        return dict(self.environment, LD_LIBRARY_PATH=self.lib + ":" + self.environment.get("LD_LIBRARY_PATH", ""), **more)

    def python(self, **more):
        """The package of the bundle for Python, without pip."""
        tests, path = os.path.join(BUNDLE, "python", "tests"), os.path.join(BUNDLE, "python")
        return self.ours(PYTHONPATH=os.pathsep.join([path, tests, self.environment.get("PYTHONPATH", "")]), GCCL_LIBRARY=self.lib + "/libgccl.so",
                         GCCL_PYTHON_TESTS=tests, **more)

    def kernels(self):
        """The file of the fat binary, or None."""
        packed, plain = os.path.join(BUNDLE, "lib", "kernels.fatbin.xz"), os.path.join(WORK, "kernels.fatbin")
        if not os.path.exists(packed):
            return None
        with lzma.open(packed) as f, open(plain, "wb") as out:
            out.write(f.read())
        return plain

    def step(self, name, argv, timeout=60, env=None, cwd=None):
        """Runs a command in a process group of its own; its output goes to $OUT/log. None when the section's time is over."""
        limit = min(timeout, self.left() - 3)
        if limit < 3:
            return None
        log = os.path.join(OUT, "log", name.replace("/", "_").replace(" ", "_") + ".txt")
        start, late = time.time(), False
        with open(log, "wb") as f:
            f.write(("$ " + " ".join(argv) + "\n").encode())
            f.flush()
            try:
                p = subprocess.Popen(argv, stdout=f, stderr=subprocess.STDOUT, env=env or self.ours(), cwd=cwd, start_new_session=True)
            except OSError as e:
                return Result(127, str(e), 0, False)
            try:
                code = p.wait(limit)
            except subprocess.TimeoutExpired:
                late, code = True, None
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except OSError:
                pass
            p.wait()
        with open(log, errors="replace") as f:
            text = f.read()
        r = Result(code, text.split("\n", 1)[1] if "\n" in text else "", time.time() - start, late)
        print("%-60s %s %.1f s" % (name[:60], "ok" if r.ok else r.why()[:120], r.seconds), flush=True)
        return r

    def row(self, part, requirement, status, reason="", **values):
        self.rows.append(dict(part=part, requirement=requirement, status=status, reason=reason, **values))

    def judge(self, part, requirement, results, reason=""):
        """One row for several steps: fail if one failed, not run if none ran."""
        ran = [r for r in results if r is not None]
        if not ran:
            return self.row(part, requirement, "not run", reason or "the section's time was over")
        bad = [r for r in ran if not r.ok]
        missed = len(results) - len(ran)
        if bad:
            return self.row(part, requirement, "fail", "%d of %d: %s" % (len(bad), len(ran), bad[0].why()))
        self.row(part, requirement, "pass" if not missed else "not run", "%d runs" % len(ran) + (", %d did not fit into the time" % missed if missed else ""))

    def finish(self):
        commit = "unknown"
        try:
            with open(os.path.join(BUNDLE, "COMMIT")) as f:
                commit = f.read().strip()
        except OSError:
            pass
        with open(os.path.join(OUT, self.name + ".json"), "w") as f:
            json.dump(dict(section=self.name, commit=commit, command=" ".join(sys.argv), machine=machine(), seconds=round(time.time() - self.start, 1),
                           rows=self.rows), f, indent=1)
        print("\n## %s, commit %s, %s, %.0f s\n\n| part | requirement | result | |\n| --- | --- | --- | --- |" % (self.name, commit, machine(), time.time() - self.start))
        for r in self.rows:
            print("| %s | %s | %s | %s |" % (r["part"], r["requirement"], r["status"], r["reason"].replace("|", "/")))
        return any(r["status"] == "fail" for r in self.rows)


def section(name, seconds, fill):
    """Fills the rows of a section and prints its table, whatever happens in it. Returns whether a row failed."""
    r = Report(name, seconds)
    try:
        fill(r)
    except Exception:  # the rows so far must not be lost
        told = traceback.format_exc()
        print(told, flush=True)
        r.row("-", "the script itself", "fail", told.strip().splitlines()[-1])
    return r.finish()


def output(argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def machine():
    return "; ".join(output(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]).splitlines()[:1]) or "no GPU"


def gpus():
    return len([x for x in output(["nvidia-smi", "-L"]).splitlines() if x.startswith("GPU ")])


def nvidia_nccl():
    """Folder of NVIDIA's NCCL that PyTorch brings, or None."""
    where = output([sys.executable, "-c", "import importlib.util as u; print(list(u.find_spec('nvidia.nccl').submodule_search_locations)[0])"])
    return where if where and os.path.exists(where + "/lib/libnccl.so.2") else None


class Mps:
    """MPS with folders of its own, stopped at the end whatever happens."""

    def __init__(self, report):
        self.dir = os.path.join(WORK, "mps")
        os.makedirs(self.dir, exist_ok=True)
        self.env = dict(CUDA_MPS_PIPE_DIRECTORY=self.dir, CUDA_MPS_LOG_DIRECTORY=self.dir)
        self.report = report

    def __enter__(self):
        try:
            r = subprocess.run(["nvidia-cuda-mps-control", "-d"], env=dict(os.environ, **self.env), capture_output=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return self if r.returncode == 0 else None

    def __exit__(self, *_):
        try:
            subprocess.run(["nvidia-cuda-mps-control"], input=b"quit\n", env=dict(os.environ, **self.env), capture_output=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            pass


def nccl_tests(report):
    """Builds nccl-tests from the bundle's copy against NVIDIA's headers, with every rank on device 0 where GCCL_ONE_DEVICE is set. Returns
    (folder of the programs, folder of those for mpirun or None, reason)."""
    source, nvidia = os.path.join(BUNDLE, "nccl-tests"), nvidia_nccl()
    if not os.path.isdir(source):
        return None, None, "no nccl-tests in the bundle: make gpu-bundle NCCL_TESTS_SRC=..."
    if not nvidia:
        return None, None, "no headers of NCCL: PyTorch brings none"
    built = os.path.join(WORK, "nccl-tests-build")
    mpi_built = None
    copy = os.path.join(WORK, "nccl-tests")
    if not os.path.exists(os.path.join(built, "all_reduce_perf")):
        subprocess.run(["rm", "-rf", copy])
        subprocess.run(["cp", "-r", source, copy], check=True)
        for name in ("common.cu", "util.cu"):
            path = os.path.join(copy, "src", name)
            with open(path) as f:
                text = f.read()
            text = text.replace("gpus[i] = (gpu0", 'gpus[i] = getenv("GCCL_ONE_DEVICE") ? 0 : (gpu0')
            text = text.replace("const int cudaDev = (gpu0", 'const int cudaDev = getenv("GCCL_ONE_DEVICE") ? 0 : (gpu0')
            with open(path, "w") as f:
                f.write(text)
        home = os.path.join(WORK, "nccl-home")
        subprocess.run(["rm", "-rf", home])
        os.makedirs(home)
        os.symlink(nvidia + "/include", home + "/include")
        os.symlink(report.lib, home + "/lib")
        cuda = os.environ.get("CUDA_HOME") or os.path.dirname(os.path.dirname(output(["bash", "-c", "command -v nvcc"]) or "/usr/local/cuda/bin/nvcc"))
        make = ["make", "-C", copy + "/src", "-j16", "NCCL_HOME=" + home, "CUDA_HOME=" + cuda, "NVCC_GENCODE=-gencode=arch=compute_90,code=sm_90"]
        r = report.step("build nccl-tests", make + ["BUILDDIR=" + built], timeout=240)
        if r is None or not r.ok:
            return None, None, "nccl-tests does not build: " + (r.why() if r else "no time")
    mpi = [os.path.dirname(p) for p in glob.glob("/usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h") + glob.glob("/opt/*/include/mpi.h") + glob.glob("/usr/include/mpi.h")]
    if mpi:
        mpi_built = os.path.join(WORK, "nccl-tests-mpi")
        if not os.path.exists(os.path.join(mpi_built, "all_reduce_perf")):
            home = os.path.join(WORK, "nccl-home")
            cuda = os.environ.get("CUDA_HOME") or os.path.dirname(os.path.dirname(output(["bash", "-c", "command -v nvcc"]) or "/usr/local/cuda/bin/nvcc"))
            r = report.step("build nccl-tests for mpirun", ["make", "-C", copy + "/src", "-j16", "MPI=1", "MPI_HOME=" + os.path.dirname(mpi[0]), "NCCL_HOME=" + home,
                            "CUDA_HOME=" + cuda, "NVCC_GENCODE=-gencode=arch=compute_90,code=sm_90", "BUILDDIR=" + mpi_built], timeout=240)
            mpi_built = mpi_built if r and r.ok else None
    return built, mpi_built, ""


def wrong(text):
    """Whether the output of an nccl-tests program is clean: it ran to its end and no value was wrong."""
    return "Avg bus bandwidth" not in text or "# Out of bounds values : 0 OK" not in text


def times(text):
    """bytes → time in µs, out of place, of an nccl-tests table."""
    out = {}
    for line in text.splitlines():
        f = line.split()
        if len(f) >= 9 and f[0].isdigit() and f[1].isdigit():
            try:
                out[int(f[0])] = float(f[5])
            except ValueError:
                pass
    return out
