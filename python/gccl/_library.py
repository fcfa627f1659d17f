"""Finding and opening ``libgccl.so``, once per process, at the first call that needs it.

Where it is looked for, first hit wins: ``GCCL_LIBRARY`` (a file); a copy that was preloaded (``LD_PRELOAD``); the copy in the
wheel (``gccl/lib``); the build tree around this file (``build/lib``); the loader's own search.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections import namedtuple

from ._errors import error_of
from ._types import CConfig, CSimInfo, CStats, CUniqueId, CWaitSignal

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

__all__ = ["LibraryInfo", "get_error_string", "library_info"]

_HERE = os.path.dirname(os.path.abspath(__file__))
_FILE = "libgccl.so"

_p, _i, _n, _u, _s = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_uint, ctypes.c_char_p
_out = ctypes.POINTER(ctypes.c_void_p)
_config = ctypes.POINTER(CConfig)
ASK = ctypes.CFUNCTYPE(_i, _p)

# Name: argument types. The result is ncclResult_t where _RESULTS does not say otherwise.
_FUNCTIONS: Dict[str, Tuple[Any, ...]] = {
    "ncclGetVersion": (ctypes.POINTER(_i),),
    "ncclGetErrorString": (_i,),
    "ncclGetLastError": (_p,),
    "ncclGetUniqueId": (ctypes.POINTER(CUniqueId),),
    "ncclCommInitRankConfig": (_out, _i, CUniqueId, _i, _config),
    "ncclCommInitRankScalable": (_out, _i, _i, _i, ctypes.POINTER(CUniqueId), _config),
    "ncclCommInitAll": (_out, _i, ctypes.POINTER(_i)),
    "ncclCommSplit": (_p, _i, _i, _out, _config),
    "ncclCommShrink": (_p, ctypes.POINTER(_i), _i, _out, _config, _i),
    "ncclCommGrow": (_p, _i, ctypes.POINTER(CUniqueId), _i, _out, _config),
    "ncclCommGetUniqueId": (_p, ctypes.POINTER(CUniqueId)),
    "ncclCommFinalize": (_p,),
    "ncclCommDestroy": (_p,),
    "ncclCommAbort": (_p,),
    "ncclCommRevoke": (_p, _i),
    "ncclCommSuspend": (_p, _i),
    "ncclCommResume": (_p,),
    "ncclCommGetAsyncError": (_p, ctypes.POINTER(_i)),
    "ncclCommCount": (_p, ctypes.POINTER(_i)),
    "ncclCommCuDevice": (_p, ctypes.POINTER(_i)),
    "ncclCommUserRank": (_p, ctypes.POINTER(_i)),
    "ncclCommMemStats": (_p, _i, ctypes.POINTER(ctypes.c_uint64)),
    "ncclMemAlloc": (_out, _n),
    "ncclMemFree": (_p,),
    "ncclCommRegister": (_p, _p, _n, _out),
    "ncclCommDeregister": (_p, _p),
    "ncclCommWindowRegister": (_p, _p, _n, _out, _i),
    "ncclCommWindowDeregister": (_p, _p),
    "ncclWinGetUserPtr": (_p, _p, _out),
    "ncclRedOpCreatePreMulSum": (ctypes.POINTER(_i), _p, _i, _i, _p),
    "ncclRedOpDestroy": (_i, _p),
    "ncclReduce": (_p, _p, _n, _i, _i, _i, _p, _p),
    "ncclBroadcast": (_p, _p, _n, _i, _i, _p, _p),
    "ncclAllReduce": (_p, _p, _n, _i, _i, _p, _p),
    "ncclReduceScatter": (_p, _p, _n, _i, _i, _p, _p),
    "ncclAllGather": (_p, _p, _n, _i, _p, _p),
    "ncclAlltoAll": (_p, _p, _n, _i, _p, _p),
    "ncclGather": (_p, _p, _n, _i, _i, _p, _p),
    "ncclScatter": (_p, _p, _n, _i, _i, _p, _p),
    "ncclSend": (_p, _n, _i, _i, _p, _p),
    "ncclRecv": (_p, _n, _i, _i, _p, _p),
    "ncclPutSignal": (_p, _n, _i, _i, _p, _n, _i, _i, _u, _p, _p),
    "ncclSignal": (_i, _i, _i, _u, _p, _p),
    "ncclWaitSignal": (_i, ctypes.POINTER(CWaitSignal), _p, _p),
    "ncclGroupStart": (),
    "ncclGroupEnd": (),
    "ncclGroupSimulateEnd": (ctypes.POINTER(CSimInfo),),
    "ncclParamGetParameter": (_s, ctypes.POINTER(_s), ctypes.POINTER(_i)),
    "ncclCommQueryProperties": (_p, _p),
    "ncclGetLsaDevicePointer": (_p, _n, _i, _out),
    "ncclGetPeerDevicePointer": (_p, _n, _i, _out),
    "ncclLLA2ACreateRequirement": (_i, _i, _p, _p),
    "ncclDevCommDestroy": (_p, _p),
    "gcclDevCommCreate": (_p, _p, _p, _u),
    "gcclDevCommGetDevicePointer": (_p, _p, _out),
    "gcclSetDeviceKind": (_i,),
    "gcclSetInterrupt": (ASK, _p),
    "gcclStreamCreate": (_out,),
    "gcclStreamSynchronize": (_p,),
    "gcclStreamQuery": (_p,),
    "gcclStreamDestroy": (_p,),
    "gcclCommGetStats": (_p, ctypes.POINTER(CStats)),
    "gcclCommMeetOnHost": (_p, _i),
    "gcclLibraryPath": (),
}
_RESULTS = {"ncclGetErrorString": _s, "ncclGetLastError": _s, "gcclLibraryPath": _s}


class _Calls:
    """The functions as attributes. Before the library is open, the first look at any of them opens it."""

    def __getattr__(self, name: str) -> Any:
        if name not in _FUNCTIONS:
            raise AttributeError(name)
        _open()
        return self.__dict__[name]


calls: Any = _Calls()
_opened: Optional[Tuple[str, str]] = None  # path, how


def _candidates() -> List[Tuple[str, str]]:
    named = os.environ.get("GCCL_LIBRARY")
    if named:
        return [(named, "GCCL_LIBRARY")]
    found = [(p, "LD_PRELOAD") for p in os.environ.get("LD_PRELOAD", "").replace(":", " ").split() if os.path.basename(p).startswith(_FILE)]
    for folder, how in ((os.path.join(_HERE, "lib"), "in the package"), (os.path.join(_HERE, "..", "..", "build", "lib"), "build tree")):
        path = os.path.normpath(os.path.join(folder, _FILE))
        if os.path.exists(path):
            found.append((path, how))
    return found or [(_FILE, "loader's search path")]


def path() -> str:
    """The file that :func:`_open` would load, without loading it."""
    return _opened[0] if _opened else _candidates()[0][0]


def _open() -> None:
    global _opened
    if _opened:
        return
    file, how = _candidates()[0]
    try:
        lib = ctypes.CDLL(file)
        functions = {name: getattr(lib, name) for name in _FUNCTIONS}
    except (OSError, AttributeError) as e:
        raise ImportError(
            f"cannot use {file} ({how}) as the GCCL library: {e}; set GCCL_LIBRARY to a libgccl.so with libgccl_core.so beside it, "
            "or install the wheel of this package",
            name="gccl",
            path=file,
        ) from None
    for name, arguments in _FUNCTIONS.items():
        functions[name].argtypes = list(arguments)
        functions[name].restype = _RESULTS.get(name, _i)
    real = functions["gcclLibraryPath"]()
    calls.__dict__.update(functions)
    _opened = (real.decode() if real else file, how)
    from . import _exit  # after the functions are there

    _exit.begin()


def last_error(comm: Optional[int] = None) -> str:
    """``ncclGetLastError`` as text."""
    return (calls.ncclGetLastError(comm) or b"").decode(errors="replace")


def check(rc: int, call: str, comm: Optional[int] = None) -> None:
    """Raises what rc stands for; 0 and ncclInProgress (7) pass."""
    if rc not in (0, 7):
        raise error_of(rc, call, last_error(comm) or get_error_string(rc))


def get_error_string(result: int) -> str:
    """Text of a result code; never fails."""
    return calls.ncclGetErrorString(int(result)).decode()


class LibraryInfo(namedtuple("LibraryInfo", "path version version_code kernels loaded_by others")):
    """Which library this process uses.

    Attributes:
        path: file, as the loader knows it.
        version, version_code: of the NCCL interface, such as "2.30.7" and 23007.
        kernels: CUDA kernels in the file: their size, or that there are none.
        loaded_by: GCCL_LIBRARY, LD_PRELOAD, in the package, build tree, or loader's search path.
        others: other files of NCCL or GCCL that are mapped into this process.
    """

    __slots__ = ()
    path: str
    version: str
    version_code: int
    kernels: str
    loaded_by: str
    others: Tuple[str, ...]


def library_info() -> LibraryInfo:
    """Says which library is in use. Opens it if need be; raises ImportError where there is none."""
    code = _i()
    check(calls.ncclGetVersion(ctypes.byref(code)), "ncclGetVersion")
    assert _opened
    file, how = _opened
    v = code.value
    return LibraryInfo(file, f"{v // 10000}.{v // 100 % 100}.{v % 100}", v, _kernels(file), how, tuple(_others(file)))


def _others(mine: str) -> List[str]:
    try:
        with open("/proc/self/maps") as maps:
            files = {line.split(None, 5)[-1].strip() for line in maps if "/" in line}
    except OSError:
        return []
    names = ("libnccl.so", "libgccl.so")
    return sorted(f for f in files if os.path.basename(f).startswith(names) and os.path.realpath(f) != os.path.realpath(mine))


def _kernels(file: str) -> str:
    """Looks for the section .gccl_fatbin (device/cuda/build/fatbin.S) in an ELF64 file: the layout is that of the System V ABI."""
    try:
        with open(file, "rb") as f:
            head = f.read(64)
            if head[:5] != b"\x7fELF\x02":
                return "unknown: not a 64-bit ELF file"
            (offset,) = struct.unpack_from("<Q", head, 0x28)
            size, count, names = struct.unpack_from("<HHH", head, 0x3A)
            f.seek(offset)
            table = f.read(size * count)
            sections = [struct.unpack_from("<IIQQQQ", table, size * k) for k in range(count)]
            f.seek(sections[names][4])
            text = f.read(sections[names][5])
    except (OSError, struct.error, IndexError) as e:
        return f"unknown: {e}"
    for name, _, _, _, _, length in sections:
        if text[name:].split(b"\0", 1)[0] == b".gccl_fatbin":
            return f"{length} bytes"
    return "none: host mode only"
