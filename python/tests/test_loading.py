"""Loading the library as inference servers do: dlopen by path, names by dlsym, structures by value (VLLM_NCCL_SO_PATH and alike)."""

import ctypes
import os
import re

import gccl
from gccl._library import path
from gccl._types import CConfig
from programs import good

# What vLLM's and SGLang's wrappers look up (their pynccl_wrapper.py), with the windows of later versions.
NAMES = """ncclGetErrorString ncclGetVersion ncclGetUniqueId ncclCommInitRank ncclAllReduce ncclReduce ncclAllGather ncclReduceScatter
ncclSend ncclRecv ncclBroadcast ncclCommDestroy ncclGroupStart ncclGroupEnd ncclCommWindowRegister ncclCommWindowDeregister
ncclMemAlloc ncclMemFree ncclCommInitRankConfig ncclCommAbort""".split()


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


def test_by_path_and_name():
    lib = ctypes.CDLL(path())
    missing = [n for n in NAMES if not hasattr(lib, n)]
    assert not missing
    version = ctypes.c_int()
    assert lib.ncclGetVersion(ctypes.byref(version)) == 0 and version.value == 23007
    uid, comm = UniqueId(), ctypes.c_void_p()
    assert lib.ncclGetUniqueId(ctypes.byref(uid)) == 0
    lib.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int]
    assert lib.ncclCommInitRank(ctypes.byref(comm), 1, uid, 0) == 0
    send, recv = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_float * 4)()
    p = ctypes.c_void_p
    lib.ncclAllReduce.argtypes = [p, p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, p, p]
    assert lib.ncclAllReduce(send, recv, 4, 7, 0, comm, None) == 0
    assert list(recv) == [1, 2, 3, 4]
    lib.ncclCommDestroy.argtypes = [p]
    assert lib.ncclCommDestroy(comm) == 0


def test_library_info():
    info = gccl.library_info()
    assert info.path.endswith("libgccl.so") and info.version == "2.30.7" and info.version_code == 23007
    assert "none" in info.kernels or "bytes" in info.kernels


def test_gccl_library_chooses(tmp_path):
    out = good("print(gccl.library_info().loaded_by)", GCCL_LIBRARY=path())
    assert out.strip() == "GCCL_LIBRARY"
    out = good(
        """
        try:
            gccl.get_unique_id()
        except ImportError as e:
            print("libgccl_core.so" in str(e) and "GCCL_LIBRARY" in str(e), e.path)
        """,
        GCCL_LIBRARY=str(tmp_path / "none.so"),
    )
    assert out.split() == ["True", str(tmp_path / "none.so")]
    out = good(
        """
        try:
            gccl.library_info()
        except ImportError as e:
            print("ncclGetVersion" in str(e))
        """,
        GCCL_LIBRARY="libc.so.6",
    )
    assert out.strip() == "True"


def test_importing_opens_nothing():
    good("assert 'libgccl' not in open('/proc/self/maps').read()\nassert threading.active_count() == 1")


def test_structures_are_those_of_the_header():
    """Order and number of the fields of ncclConfig_t, read from gccl.h."""
    header = os.path.join(os.path.dirname(__file__), "..", "..", "include", "gccl.h")
    with open(header) as f:
        body = re.search(r"struct ncclConfig_v23000 \{(.+?)\} ncclConfig_t;", f.read(), re.S).group(1)
    names = re.findall(r"^\s*(?:size_t|unsigned int|int|const char\*) (\w+);", body, re.M)
    assert [n.replace("_", "") for n, _ in CConfig._fields_] == [n.lower() for n in names]


def test_number_of_results():
    assert gccl.get_error_string(0) and gccl.get_error_string(12345)
