"""The library of kernels on the CPU that test_device.py and cuda_ranks.py call: built here, once for all ranks."""

import ctypes
import fcntl
import os
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("GCCL_LIB_DIR") or os.path.join(ROOT, "build", "lib")
_SOURCE = os.path.join(HERE, "device_kernels.cc")
_V, _U, _N = ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t
_TAKES = {"by_value": (_U, _V, _V, _N, _V), "by_pointer": (_U, _V, _V, _N, _V), "gin_gather": (_V, _U, _V), "ll_exchange": (_V, _V, ctypes.c_char_p, _V)}


def library():
    """The kernels; a call raises what the kernel says."""
    file = os.path.join(tempfile.gettempdir(), f"gccl-kernels-{os.getuid()}-{os.stat(_SOURCE).st_mtime_ns}-{os.stat(ROOT).st_ino}.so")
    with open(file + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(file):
            command = ["g++", "-std=c++14", "-O1", "-shared", "-fPIC", f"-I{ROOT}/include", _SOURCE, "-o", file + ".new", f"-L{BUILD}", "-lgccl_cpu", "-lgccl", f"-Wl,-rpath,{BUILD}"]
            p = subprocess.run(command, capture_output=True, text=True)
            assert p.returncode == 0, p.stderr
            os.rename(file + ".new", file)
    return Kernels(ctypes.CDLL(file))


class Kernels:
    def __init__(self, lib):
        self._lib = lib
        self.sizes = list((_N * 9).in_dll(lib, "sizes"))

    def __getattr__(self, name):
        function = getattr(self._lib, name)
        function.argtypes, function.restype = _TAKES[name], ctypes.c_char_p

        def call(*args):
            text = function(*args).decode()
            assert not text, text

        return call
