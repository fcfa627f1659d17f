"""From Python objects to addresses.

:func:`resolve` turns a buffer into ``(address, count, type, device, readonly, keep)``: count is in elements, type an
``ncclDataType_t``, device -1 for host memory or the number of the CUDA device, keep what must live as long as the address is
used. Each class of objects has a resolver, found once by its type; the common ones cost about half a microsecond.
"""

from __future__ import annotations

import ctypes
import sys

from ._errors import NcclInvalid
from ._types import BY_NAME, ITEMSIZE

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional, Tuple

    Resolved = Tuple[int, int, int, int, bool, Any]

HOST = -1

_resolvers: Dict[type, Callable[[Any], Resolved]] = {}


def resolve(buffer: Any) -> Resolved:
    """What the library needs to know of a buffer. NcclInvalid says what is wrong with it."""
    resolver = _resolvers.get(type(buffer))
    if resolver is None:
        resolver = _resolvers[type(buffer)] = _resolver_for(buffer)
    return resolver(buffer)


def _resolver_for(buffer: Any) -> Callable[[Any], Resolved]:
    kinds = {c.__module__.partition(".")[0] + "." + c.__name__ for c in type(buffer).__mro__}
    if "torch.Tensor" in kinds:
        return _torch_resolver()
    if "numpy.ndarray" in kinds:
        return _numpy_resolver()
    if hasattr(buffer, "__cuda_array_interface__"):
        return _cuda_array
    if isinstance(buffer, Buffer):
        return Buffer.resolve
    try:
        memoryview(buffer)
        return _buffer_protocol
    except TypeError:
        pass
    if hasattr(buffer, "__dlpack__") and hasattr(buffer, "__dlpack_device__"):
        return _dlpack
    raise NcclInvalid(
        f"a {type(buffer).__name__} is no buffer: pass a numpy array, a torch tensor, or an object with "
        "__cuda_array_interface__, __dlpack__ or the buffer protocol"
    )


def _not_contiguous(what: str, remedy: str) -> NcclInvalid:
    return NcclInvalid(f"{what} is not contiguous in C order: its elements must lie one after the other; pass {remedy}")


def _no_type(what: object, remedy: str = "") -> NcclInvalid:
    return NcclInvalid(f"element type {what} has no NCCL type (those are {', '.join(BY_NAME)}){remedy}")


_NO_BOOL = "; view it as uint8"


_address = ctypes.addressof
_place = ctypes.c_char.from_buffer


def _numpy_resolver() -> Callable[[Any], Resolved]:
    """For numpy arrays. Types are told apart by the dtype object, whose hash numpy keeps."""
    codes: Dict[Any, int] = {}

    def learn(dtype: Any) -> int:
        if not dtype.isnative:
            raise _no_type(dtype, ": its byte order is not this machine's")
        code = BY_NAME.get(dtype.name)
        if code is None:
            raise _no_type(dtype, _NO_BOOL if dtype.kind == "b" else "")
        codes[dtype] = code
        return code

    def resolver(a: Any) -> Resolved:
        code = codes.get(a.dtype)
        if code is None:
            code = learn(a.dtype)
        try:  # the quickest way to the address; it demands a writable array in C order with at least one element
            return _address(_place(a)), a.size, code, HOST, False, a
        except (TypeError, ValueError):
            pass
        flags = a.flags
        if not flags.c_contiguous:
            raise _not_contiguous(f"a numpy array of shape {a.shape}", "numpy.ascontiguousarray of it")
        return a.__array_interface__["data"][0], a.size, code, HOST, not flags.writeable, a

    return resolver


def _torch_resolver() -> Callable[[Any], Resolved]:
    """For tensors of torch, which is imported already when there is one."""
    torch = sys.modules["torch"]
    codes = {getattr(torch, name): code for name, code in BY_NAME.items() if hasattr(torch, name)}
    strided = torch.strided

    def resolver(t: Any) -> Resolved:
        code = codes.get(t.dtype)
        if code is None:
            raise _no_type(t.dtype, _NO_BOOL if str(t.dtype) == "torch.bool" else "")
        if t.layout is not strided:
            raise NcclInvalid(f"a tensor of layout {t.layout} has no one memory; pass a dense (strided) tensor")
        if not t.is_contiguous():
            raise _not_contiguous(f"a tensor of shape {tuple(t.shape)}", "tensor.contiguous()")
        if t.is_cpu:
            return t.data_ptr(), t.numel(), code, HOST, False, t
        if not t.is_cuda:
            raise NcclInvalid(f"a tensor on {t.device} cannot be reached: use cpu or cuda")
        return t.data_ptr(), t.numel(), code, t.device.index, False, t

    return resolver


_KINDS = {"i": "int", "u": "uint", "f": "float"}


def _typestr(s: str) -> int:
    """The type of an array interface's typestr, such as '<f4'. ml_dtypes' types are opaque there ('<V2')."""
    code = BY_NAME.get(f"{_KINDS.get(s[1], s[1])}{int(s[2:]) * 8}")
    if code is None or (s[0] == ">" and int(s[2:]) > 1):
        raise _no_type(s, _NO_BOOL if s[1] == "b" else "")
    return code


def _packed(shape: Tuple[int, ...], strides: Optional[Tuple[int, ...]], unit: int) -> bool:
    """Whether strides (in the unit of an element) are those of C order; an axis of length 1 may have any."""
    if strides is None or 0 in shape:
        return True
    expected = unit
    for n, stride in zip(reversed(shape), reversed(strides)):
        if n != 1 and stride != expected:
            return False
        expected *= n
    return True


def _product(shape: Tuple[int, ...]) -> int:
    n = 1
    for k in shape:
        n *= k
    return n


def _cuda_array(a: Any) -> Resolved:
    """CUDA array interface, versions 2 and 3 (numba.readthedocs.io, cuda_array_interface)."""
    d = a.__cuda_array_interface__
    shape = tuple(d["shape"])
    dtype = getattr(a, "dtype", None)  # cupy has names for what a typestr cannot say
    code = BY_NAME.get(str(dtype))
    if code is None:
        code = _typestr(d["typestr"])
    if d.get("mask") is not None:
        raise NcclInvalid("a masked CUDA array cannot be sent")
    if not _packed(shape, d.get("strides"), ITEMSIZE[code]):
        raise _not_contiguous(f"a CUDA array of shape {shape}", "a contiguous copy")
    pointer, readonly = d["data"]
    device = getattr(a, "device", None)
    return pointer or 0, _product(shape), code, getattr(device, "id", 0) or 0, bool(readonly), a


class _PyBuffer(ctypes.Structure):
    """``Py_buffer`` of the C interface of Python (stable since 3.0; Include/cpython/object.h)."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]

    def __del__(self) -> None:
        if self.obj:
            _release(ctypes.byref(self))


_PYBUF_SIMPLE = 0  # one run of bytes; C order was looked at before
_get = ctypes.pythonapi.PyObject_GetBuffer
_get.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes = [ctypes.POINTER(_PyBuffer)]
_release.restype = None

_LETTERS = {"b": "int", "h": "int", "i": "int", "l": "int", "q": "int", "n": "int"}
_LETTERS.update({k.upper(): "uint" for k in _LETTERS})
_LETTERS.update({"e": "float", "f": "float", "d": "float", "c": "uint"})


def _export(b: Any) -> Tuple[int, bool, Any]:
    view = _PyBuffer()
    _get(b, ctypes.byref(view), _PYBUF_SIMPLE)
    return view.buf or 0, bool(view.readonly), view


def _buffer_protocol(b: Any) -> Resolved:
    """bytes, bytearray, array.array, memoryview, ctypes arrays and whatever else has the buffer protocol."""
    with memoryview(b) as m:
        letter, itemsize = m.format.lstrip("@=<"), m.itemsize
        code = BY_NAME.get(f"{_LETTERS.get(letter, letter)}{itemsize * 8}")
        if code is None or m.format[0] in ">!":
            raise _no_type(f"with the struct format {m.format!r}", _NO_BOOL if letter == "?" else "")
        if not m.c_contiguous:
            raise _not_contiguous(f"a {type(b).__name__} of shape {m.shape}", "a contiguous copy")
        count = m.nbytes // itemsize
    try:  # cheaper than _export; the place holds the export as well
        place = _place(b)
        return _address(place), count, code, HOST, False, place
    except (TypeError, ValueError):  # read-only or empty
        address, readonly, keep = _export(b)
        return address, count, code, HOST, readonly, keep


class _DLDevice(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DLTensor(ctypes.Structure):
    """``DLTensor`` of dlpack.h, version 0.2 and later, which ``DLManagedTensor`` begins with."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _DLDevice),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


# DLDeviceType and DLDataTypeCode of dlpack.h; 3 (CUDA host) and 13 (managed) are reachable as they are.
_DL_HOST, _DL_CUDA = (1, 3), (2, 13)
_DL_CODES = {(0, n): f"int{n}" for n in (8, 32, 64)}
_DL_CODES.update({(1, n): f"uint{n}" for n in (8, 32, 64)})
_DL_CODES.update({(2, n): f"float{n}" for n in (16, 32, 64)})
_DL_CODES.update({(4, 16): "bfloat16", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2"})

_capsule = ctypes.pythonapi.PyCapsule_GetPointer
_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule.restype = ctypes.c_void_p


def _dlpack(o: Any) -> Resolved:
    """DLPack. The capsule is not consumed: its own destructor releases the tensor when keep goes."""
    kind, index = o.__dlpack_device__()
    capsule = o.__dlpack__()
    t = _DLTensor.from_address(_capsule(capsule, b"dltensor"))
    name = _DL_CODES.get((t.code, t.bits))
    if name is None or t.lanes != 1:
        raise _no_type(f"with DLPack code {t.code}, {t.bits} bits, {t.lanes} lanes", _NO_BOOL if t.code == 6 else "")
    shape = tuple(t.shape[k] for k in range(t.ndim))
    strides = tuple(t.strides[k] for k in range(t.ndim)) if t.strides else None
    if not _packed(shape, strides, 1):
        raise _not_contiguous(f"a DLPack tensor of shape {shape}", "a contiguous copy")
    if kind not in _DL_HOST + _DL_CUDA:
        raise NcclInvalid(f"memory of DLPack device type {kind} cannot be reached: use host or CUDA memory")
    address = (t.data or 0) + t.byte_offset
    return address, _product(shape), BY_NAME[name], HOST if kind in _DL_HOST else index, False, capsule


class Buffer:
    """An address with a count and a type, for memory that no library wraps.

    Args:
        address: of the first element.
        count: elements.
        dtype: a :class:`NcclDataType`.
        device: number of the CUDA device, or None for host memory.
        readonly: whether it may only be sent.
        keep: lives as long as the buffer.
    """

    __slots__ = ("_resolved",)

    def __init__(
        self, address: int, count: int, dtype: int, device: Optional[int] = None, readonly: bool = False, keep: Any = None
    ) -> None:
        self._resolved: Resolved = (address, count, int(dtype), HOST if device is None else device, readonly, keep)

    def resolve(self) -> Resolved:
        """See :func:`resolve`."""
        return self._resolved


def view(buffer: Any, dtype: int) -> Buffer:
    """The bytes of a host buffer as elements of another type: bfloat16 and fp8 where ml_dtypes is not installed.

    Args:
        buffer: contiguous, with the buffer protocol, of any type, for example a numpy array of uint16.
        dtype: a :class:`NcclDataType`, for example ``gccl.BFLOAT16``.
    """
    with memoryview(buffer) as m:
        if not m.c_contiguous:
            raise _not_contiguous(f"a {type(buffer).__name__} of shape {m.shape}", "a contiguous copy")
        nbytes = m.nbytes
    if nbytes % ITEMSIZE[dtype]:
        raise NcclInvalid(f"{nbytes} bytes are no whole number of elements of {ITEMSIZE[dtype]} bytes")
    address, readonly, keep = _export(buffer)
    return Buffer(address, nbytes // ITEMSIZE[dtype], dtype, None, readonly, keep)
