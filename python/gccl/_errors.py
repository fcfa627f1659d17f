"""Exceptions. Every failure of the library carries its code and the library's own words."""

from __future__ import annotations

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Dict, Type


__all__ = [
    "NCCLError",
    "NCCLCudaError",
    "NCCLSystemError",
    "NCCLInternalError",
    "NCCLInvalidArgument",
    "NCCLInvalidUsage",
    "NCCLRemoteError",
    "NCCLTimeout",
    "NcclInvalid",
]


class NCCLError(RuntimeError):
    """A call of the library failed.

    Attributes:
        code: the ``ncclResult_t`` value.
        call: the C function.
        text: the library's last-error text: call, rank, object, cause and remedy.
    """

    def __init__(self, code: int, call: str, text: str) -> None:
        super().__init__(text if call in text else f"{call}: {text}")
        self.code = code
        self.call = call
        self.text = text

    def __reduce__(self):  # type: ignore[no-untyped-def]  # exceptions of ranks travel between processes
        return type(self), (self.code, self.call, self.text)


class NCCLCudaError(NCCLError):
    """A call into CUDA failed (code 1)."""


class NCCLSystemError(NCCLError):
    """The operating system, a library or the network failed (code 2)."""


class NCCLInternalError(NCCLError):
    """A defect of the library (code 3)."""


class NCCLInvalidArgument(NCCLError, ValueError):
    """An argument is wrong by itself (code 4)."""


class NCCLInvalidUsage(NCCLError):
    """The call is wrong now or in this combination, or not in this version (code 5)."""


class NCCLRemoteError(NCCLError):
    """Another rank failed or cannot be reached (code 6)."""


class NCCLTimeout(NCCLError, TimeoutError):
    """A deadline passed (code 8)."""


class NcclInvalid(ValueError):
    """A buffer or argument does not fit, found before the library was called: type, shape, contiguity, device."""


_BY_CODE: Dict[int, Type[NCCLError]] = {
    1: NCCLCudaError,
    2: NCCLSystemError,
    3: NCCLInternalError,
    4: NCCLInvalidArgument,
    5: NCCLInvalidUsage,
    6: NCCLRemoteError,
    8: NCCLTimeout,
}


def error_of(code: int, call: str, text: str) -> NCCLError:
    """The exception for a result code."""
    return _BY_CODE.get(code, NCCLError)(code, call, text)
