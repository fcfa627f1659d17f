"""Memory of the library's allocator: what windows are made of, and what peers reach without a copy."""

from __future__ import annotations

import ctypes

from . import _exit
from ._buffers import Buffer
from ._errors import NcclInvalid
from ._kind import Kind, device_kind
from ._library import calls, check
from ._types import BY_NAME, ITEMSIZE, NAMES

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Sequence, Tuple, Union

__all__ = ["empty", "mem_alloc", "mem_free", "zeros"]


class _Memory:
    """An allocation; freed with the last object that refers to it. Windows refer to it, so they go first."""

    def __init__(self, size: int, device: Optional[str]) -> None:
        self.device = device_kind(device)
        box = ctypes.c_void_p()
        with Kind(self.device):
            check(calls.ncclMemAlloc(ctypes.byref(box), max(size, 1)), "ncclMemAlloc")
        self.address, self.size = box.value or 0, size

    def free(self) -> None:
        """Gives it back. Twice is once; in a forked child it stays."""
        address, self.address = self.address, 0
        if address and _exit.ours():
            check(calls.ncclMemFree(address), "ncclMemFree")

    def __del__(self) -> None:
        if self.__dict__.get("address"):
            self.free()


class _HostArray:
    """What numpy makes an array of, without a copy; the array keeps it."""

    def __init__(self, memory: _Memory, shape: Tuple[int, ...], typestr: str) -> None:
        self._memory = memory
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": typestr, "data": (memory.address, False)}


class DeviceArray:
    """Memory on a GPU with ``__cuda_array_interface__``: for ``torch.as_tensor`` and ``cupy.asarray``, which keep it."""

    def __init__(self, memory: _Memory, shape: Tuple[int, ...], typestr: str) -> None:
        self._memory = memory
        self.shape = shape
        self.__cuda_array_interface__ = {"version": 3, "shape": shape, "typestr": typestr, "strides": None, "data": (memory.address, False)}


_TYPESTR = {"int": "i", "uint": "u", "float": "f"}


def _dtype(dtype: Any) -> Tuple[int, str]:
    """Type and its name, from a NcclDataType, a numpy or torch type, or a name."""
    if isinstance(dtype, int):
        return int(dtype), NAMES[int(dtype)]
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = name.rpartition(".")[2]
    if name not in BY_NAME:
        raise NcclInvalid(f"element type {dtype} has no NCCL type (those are {', '.join(BY_NAME)})")
    return BY_NAME[name], name


def _shape(shape: Union[int, Sequence[int]]) -> Tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)


def empty(shape: Union[int, Sequence[int]], dtype: Any = "float32", *, device: Optional[str] = None) -> Any:
    """A new array in memory of ncclMemAlloc, not initialized: page-aligned, fit for :meth:`Communicator.register_window`.

    Args:
        shape: a number or a sequence.
        dtype: a name such as "float32", a numpy type, or a :class:`NcclDataType`. bfloat16 and fp8 need ml_dtypes.
        device: "host" gives a numpy array, "cuda" (on the thread's current device) an object with
            ``__cuda_array_interface__``; None is what :meth:`Communicator.init` would take. ``gccl.torch.empty`` gives tensors.

    The memory is freed with the last array that refers to it.
    """
    code, name = _dtype(dtype)
    dims = _shape(shape)
    count = 1
    for n in dims:
        count *= n
    memory = _Memory(count * ITEMSIZE[code], device)
    letters = name.rstrip("0123456789")
    if memory.device == "cuda":
        if letters not in _TYPESTR:
            raise NcclInvalid(f"a CUDA array interface has no {name}: use gccl.torch.empty")
        return DeviceArray(memory, dims, f"<{_TYPESTR[letters]}{ITEMSIZE[code]}")
    import numpy

    if letters in _TYPESTR:
        return numpy.asarray(_HostArray(memory, dims, f"<{_TYPESTR[letters]}{ITEMSIZE[code]}"))
    import ml_dtypes

    return numpy.asarray(_HostArray(memory, dims, f"<u{ITEMSIZE[code]}")).view(getattr(ml_dtypes, name))


def zeros(shape: Union[int, Sequence[int]], dtype: Any = "float32") -> Any:
    """:func:`empty` on the host, filled with zeros."""
    a = empty(shape, dtype, device="host")
    a[...] = 0
    return a


_raw: Dict[int, _Memory] = {}


def mem_alloc(size: int, *, device: Optional[str] = None) -> Buffer:
    """At least size bytes, as a buffer of uint8 that stays until :func:`mem_free`."""
    memory = _Memory(size, device)
    _raw[memory.address] = memory
    return Buffer(memory.address, size, 1, 0 if memory.device == "cuda" else None)


def mem_free(buffer: Buffer) -> None:
    """Frees what :func:`mem_alloc` gave; its windows are closed before. ValueError for anything else, twice included."""
    memory = _raw.pop(buffer.resolve()[0], None)
    if memory is None:
        raise ValueError("mem_free: not a live buffer of mem_alloc")
    memory.free()
