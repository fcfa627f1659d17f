"""The device kind of a communicator or of memory: "host" or "cuda"."""

from __future__ import annotations

import ctypes

from ._errors import NcclInvalid
from ._library import calls, check

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, Optional

_KINDS = {"host": 1, "cuda": 2}


def device_kind(device: Optional[str]) -> str:
    """"host" or "cuda": what was asked for, else ``GCCL_DEVICE``, else cuda where this machine and this library offer it."""
    if device is None:
        text, length = ctypes.c_char_p(), ctypes.c_int()
        check(calls.ncclParamGetParameter(b"GCCL_DEVICE", ctypes.byref(text), ctypes.byref(length)), "ncclParamGetParameter")
        device = (text.value or b"auto").decode()
        if device == "auto":
            device = "cuda" if calls.gcclSetDeviceKind(_KINDS["cuda"]) == 0 else "host"
            calls.gcclSetDeviceKind(0)
    if device not in _KINDS:
        raise NcclInvalid(f"device is {device!r}: it is 'host' (ordinary memory) or 'cuda' (GPU memory)")
    return device


class Kind:
    """The device kind of what the calling thread makes inside the block."""

    def __init__(self, kind: str) -> None:
        self._number = _KINDS[kind]

    def __enter__(self) -> None:
        check(calls.gcclSetDeviceKind(self._number), "gcclSetDeviceKind")

    def __exit__(self, *_: Any) -> None:
        calls.gcclSetDeviceKind(0)
