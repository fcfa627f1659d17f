"""Windows, device communicators, one-sided operations and operators of a communicator."""

from __future__ import annotations

import ctypes

from ._call import Caller
from ._device import CommProperties, CProperties, DevCommResource, NCCLDevCommRequirements
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

    def create_dev_comm(self, requirements: Optional[NCCLDevCommRequirements] = None) -> DevCommResource:
        """Makes a device communicator, with which kernels communicate themselves. Every rank calls, with the same requirements.

        Raises NCCLInvalidArgument naming the field that cannot be met, NCCLInvalidUsage where ranks ask for different things.
        """
        if requirements is not None and not isinstance(requirements, NCCLDevCommRequirements):
            raise TypeError(f"requirements is a {type(requirements).__name__}: pass a gccl.NCCLDevCommRequirements")
        dev = DevCommResource(self)  # type: ignore[arg-type]
        self._check(dev._create(requirements or NCCLDevCommRequirements()), "ncclDevCommCreate")
        return dev

    def query_properties(self) -> CommProperties:
        """What this communicator can do: to be asked before :meth:`create_dev_comm`. Local."""
        c = CProperties()
        self._check(calls.ncclCommQueryProperties(self._ptr, ctypes.byref(c)), "ncclCommQueryProperties")
        return CommProperties(c)

    device_api_support = property(lambda self: self.query_properties().device_api_support, doc="Whether create_dev_comm works.")
    multimem_support = property(lambda self: self.query_properties().multimem_support, doc="Whether there is multicast.")
    gin_type = property(lambda self: self.query_properties().gin_type, doc="GIN between all ranks, an NcclGinType.")
    railed_gin_type = property(lambda self: self.query_properties().railed_gin_type, doc="GIN along rails, an NcclGinType.")
    n_lsa_teams = property(lambda self: self.query_properties().n_lsa_teams, doc="Number of LSA teams.")
    host_rma_support = property(lambda self: self.query_properties().host_rma_support, doc="Whether put_signal works.")
    nvml_dev = property(lambda self: self.query_properties().nvml_dev, doc="NVML's number of the device; -1 where there is none.")

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
