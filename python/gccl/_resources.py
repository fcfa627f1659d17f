"""What belongs to a communicator: windows, registered buffers, operators."""

from __future__ import annotations

import ctypes

from . import _exit, _group
from ._buffers import HOST, resolve
from ._errors import NcclInvalid
from ._library import calls
from ._types import ITEMSIZE, NcclDataType

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, Optional, Tuple
    from ._communicator import Communicator


__all__ = ["CustomRedOp", "RegisteredBufferHandle", "RegisteredWindowHandle"]


class _Registered:
    """A buffer that a communicator knows. It is kept alive; close() or the end of the communicator ends it."""

    def __init__(self, comm: "Communicator", buffer: Any) -> None:
        self._comm = comm
        b = resolve(buffer)
        self._address, self._keep = b[0], b[5]
        self.size = b[1] * ITEMSIZE[b[2]]
        """Bytes."""
        self._box = ctypes.c_void_p()

    @property
    def handle(self) -> int:
        """The C handle; inside a group valid after its end. 0 when there is none."""
        return self._box.value or 0

    @property
    def is_valid(self) -> bool:
        """Whether there is a handle and the communicator lives."""
        return bool(self.handle) and self._comm.is_valid

    def _deregister(self) -> int:
        raise NotImplementedError

    def close(self) -> None:
        """Ends the registration. No rank uses it any more. Twice is once."""
        if self.is_valid and _exit.ours():
            rc = self._deregister()
            self._box.value = None
            self._comm._check(rc, f"{type(self).__name__}.close")

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gccl.{type(self).__name__} of {self.size} bytes{'' if self.is_valid else ', not valid'}>"


class RegisteredWindowHandle(_Registered):
    """Memory that all ranks registered together, from :meth:`Communicator.register_window`."""

    def __init__(self, comm: "Communicator", buffer: Any, flags: int) -> None:
        super().__init__(comm, buffer)
        self._flags = int(flags)

    def _register(self) -> int:
        if _group.inside():
            _group.keep(self)
        return calls.ncclCommWindowRegister(self._comm._ptr, self._address, self.size, ctypes.byref(self._box), self._flags)

    def _deregister(self) -> int:
        return calls.ncclCommWindowDeregister(self._comm._ptr, self._box)

    @property
    def user_ptr(self) -> int:
        """The address at which this rank registered it."""
        out = ctypes.c_void_p()
        rc = calls.ncclWinGetUserPtr(self._comm._ptr, self._box, ctypes.byref(out))
        self._comm._check(rc, "ncclWinGetUserPtr")
        return out.value or 0


    def _pointer(self, call: str, offset: int, rank: int) -> int:
        out = ctypes.c_void_p()
        self._comm._check(getattr(calls, call)(self._box, offset, rank, ctypes.byref(out)), call)
        return out.value or 0

    def lsa_ptr(self, lsa_rank: int, offset: int = 0) -> int:
        """Address of byte offset at a rank of the LSA team, as this rank's kernels use it: for kernels that take plain addresses."""
        return self._pointer("ncclGetLsaDevicePointer", offset, lsa_rank)

    def peer_ptr(self, rank: int, offset: int = 0) -> int:
        """The same for a rank of the communicator; 0 where it is not in the LSA team."""
        return self._pointer("ncclGetPeerDevicePointer", offset, rank)


class RegisteredBufferHandle(_Registered):
    """A hint about a buffer, from :meth:`Communicator.register_buffer`."""

    def _register(self) -> int:
        return calls.ncclCommRegister(self._comm._ptr, self._address, self.size, ctypes.byref(self._box))

    def _deregister(self) -> int:
        return calls.ncclCommDeregister(self._comm._ptr, self._box)


class CustomRedOp:
    """An operator of :meth:`Communicator.create_pre_mul_sum`: pass it as ``op``. It goes with its communicator at the latest."""

    def __init__(self, comm: "Communicator", op: int, keep: Any) -> None:
        self._comm, self.op, self._keep = comm, op, keep

    @property
    def _as_parameter_(self) -> int:
        return self.op

    def __int__(self) -> int:
        return self.op

    def close(self) -> None:
        """Releases it; legal as soon as the collectives that use it were called. Twice is once."""
        op, self.op = self.op, -1
        if op >= 0 and self._comm.is_valid and _exit.ours():
            self._comm._check(calls.ncclRedOpDestroy(op, self._comm._ptr), "ncclRedOpDestroy")

    def __repr__(self) -> str:
        return f"<gccl.CustomRedOp {self.op}>"


_INTEGERS = (ctypes.c_int8, ctypes.c_uint8, ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64)


def _number(value: float, code: int) -> Any:
    """The scalar in the memory form of its type."""
    import struct

    if code < len(_INTEGERS):
        c = _INTEGERS[code](int(value))
        if c.value != value:
            raise NcclInvalid(f"{value} is no {NcclDataType(code).name.lower()}")
        return c
    if code == NcclDataType.FLOAT16:
        return ctypes.create_string_buffer(struct.pack("=e", value), 2)
    if code == NcclDataType.FLOAT32:
        return ctypes.c_float(value)
    if code == NcclDataType.FLOAT64:
        return ctypes.c_double(value)
    if code == NcclDataType.BFLOAT16:  # the upper half of a float, rounded to even
        (bits,) = struct.unpack("=I", struct.pack("=f", value))
        return ctypes.c_uint16((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 if value == value else 0x7FC0)
    raise NcclInvalid(f"a number as {NcclDataType(code).name}: pass a buffer of one element instead")


def scalar_of(scalar: Any, datatype: Optional[int]) -> Tuple[int, int, bool, Any]:
    """Address, type, whether it is in CUDA memory, and what to keep."""
    if isinstance(scalar, (int, float)) and not isinstance(scalar, bool):
        if datatype is None:
            raise NcclInvalid("a number as scalar needs datatype")
        c = _number(scalar, int(datatype))
        return ctypes.addressof(c), int(datatype), False, c
    b = resolve(scalar)
    if b[1] != 1:
        raise NcclInvalid(f"the scalar has {b[1]} elements, not one")
    if datatype is not None and b[2] != datatype:
        raise NcclInvalid(f"the scalar is {NcclDataType(b[2]).name}, datatype {NcclDataType(datatype).name}")
    return b[0], b[2], b[3] != HOST, b
