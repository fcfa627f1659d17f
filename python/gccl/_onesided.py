"""Windows, one-sided operations and operators of a communicator."""

from __future__ import annotations

import ctypes

from ._call import Caller
from ._library import calls
from ._resources import CustomRedOp, RegisteredBufferHandle, RegisteredWindowHandle, scalar_of
from ._types import CWaitSignal, NcclDataType, WaitSignalDesc, WindowFlag

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, Optional, Sequence, Union


class OneSided(Caller):
    """A communicator's windows, one-sided operations and operators."""

    # ---- Windows and one-sided operations --------------------------------------------------------------------------

    def register_window(self, buffer: Any, flags: Optional[WindowFlag] = None) -> RegisteredWindowHandle:
        """Makes a buffer of :func:`empty` or :func:`mem_alloc` reachable for all ranks. Every rank calls, sizes may differ.

        Args:
            flags: COLL_SYMMETRIC (the default here) for collectives on the window and :meth:`put_signal`.
        """
        window = RegisteredWindowHandle(self, buffer, WindowFlag.COLL_SYMMETRIC if flags is None else flags)
        self._check(window._register(), "ncclCommWindowRegister")
        return window

    def register_buffer(self, buffer: Any) -> RegisteredBufferHandle:
        """Says that a buffer will be used often. A hint: it changes speed at most. Local."""
        handle = RegisteredBufferHandle(self, buffer)
        self._check(handle._register(), "ncclCommRegister")
        return handle

    def put_signal(
        self,
        local_buffer: Any,
        peer: int,
        peer_window: RegisteredWindowHandle,
        peer_window_offset: int = 0,
        signal_index: int = 0,
        context: int = 0,
        flags: int = 0,
        *,
        stream: Any = None,
    ) -> None:
        """Writes local_buffer into peer's part of the window, peer_window_offset bytes from its start, then signals peer.

        local_buffer lies in a window of this communicator. To one peer everything arrives in order, and a signal that is
        seen means that its data is there. Indices, contexts and flags are 0.
        """
        b, stream = self._one("put_signal", local_buffer, False, stream)
        rc = calls.ncclPutSignal(
            b[0], b[1], b[2], peer, peer_window.handle, peer_window_offset, signal_index, context, flags, self._ptr, stream
        )
        self._check(rc, "ncclPutSignal")

    def signal(self, peer: int, signal_index: int = 0, context: int = 0, flags: int = 0, *, stream: Any = None) -> None:
        """Signals peer after all earlier puts and signals to it."""
        stream = self._special(stream)
        self._check(calls.ncclSignal(peer, signal_index, context, flags, self._ptr, stream), "ncclSignal")

    def wait_signal(self, descs: Union[WaitSignalDesc, Sequence[WaitSignalDesc]], *, stream: Any = None) -> None:
        """Waits until each entry's signals have come, and takes them off the count."""
        entries = [descs] if isinstance(descs, WaitSignalDesc) else list(descs)
        array = (CWaitSignal * max(len(entries), 1))(
            *[CWaitSignal(d.op_count, d.peer, d.signal_index, d.context) for d in entries]
        )
        stream = self._special(stream)
        self._check(calls.ncclWaitSignal(len(entries), array, self._ptr, stream), "ncclWaitSignal")

    # ---- Operators -------------------------------------------------------------------------------------------------

    def create_pre_mul_sum(self, scalar: Any, datatype: Optional[NcclDataType] = None) -> CustomRedOp:
        """An operator that multiplies each rank's input by scalar and sums the products. Ranks may have different scalars.

        Args:
            scalar: a number, read now; or a buffer of one element. A buffer in CUDA memory is read while a collective runs.
            datatype: of the collectives; needed for a number.
        """
        address, code, on_device, keep = scalar_of(scalar, datatype)
        op = ctypes.c_int()
        rc = calls.ncclRedOpCreatePreMulSum(ctypes.byref(op), address, code, 0 if on_device else 1, self._ptr)
        self._check(rc, "ncclRedOpCreatePreMulSum")
        return CustomRedOp(self, op.value, keep)

    def close_all_resources(self) -> None:
        """There for code that calls it: windows, buffers and operators go with the communicator."""
