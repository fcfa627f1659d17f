"""Streams: in host mode a worker thread of the library with a queue of work, on CUDA whatever handle the caller has."""

from __future__ import annotations

import ctypes
import sys

from . import _exit, _interrupt
from ._errors import NcclInvalid
from ._library import calls, check

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, List, Optional

__all__ = ["Stream"]


class Stream:
    """A host stream: one thread that runs what is enqueued, first in, first out.

    Pass it as ``stream=`` to have a call return at once; :meth:`synchronize` waits for the work. Buffers that were passed are
    kept alive until then. Failures of the work are reported by its communicator (:meth:`Communicator.get_async_error`).
    Closing waits for the work; so does a with statement.
    """

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        check(calls.gcclStreamCreate(ctypes.byref(handle)), "gcclStreamCreate")
        self.handle: Optional[int] = handle.value
        self._kept: List[Any] = []
        assert self.handle
        _exit.stream_opened(self.handle)
        _interrupt.watch()

    def synchronize(self) -> None:
        """Waits until all work enqueued before is done. KeyboardInterrupt ends the wait, not the work: abort its communicator."""
        rc = calls.gcclStreamSynchronize(self._open())
        _interrupt.finish()
        check(rc, "gcclStreamSynchronize")
        if rc == 0:
            self._kept.clear()

    def query(self) -> bool:
        """True when nothing is left to do. Does not block."""
        rc = calls.gcclStreamQuery(self._open())
        check(rc, "gcclStreamQuery")
        if rc == 0:
            self._kept.clear()
        return rc == 0

    def close(self) -> None:
        """Finishes the work and ends the thread. Twice is once."""
        if self.handle is not None:
            self.synchronize()
            self._release()

    def _open(self) -> int:
        if self.handle is None:
            raise ValueError("the stream is closed")
        return self.handle

    def _release(self) -> None:
        handle, self.handle = self.handle, None
        if handle is not None and _exit.ours() and _exit.stream_closed(handle):
            calls.gcclStreamDestroy(handle)

    def keep(self, *things: Any) -> None:
        """Keeps things alive until the work is known to be done."""
        self._kept.append(things)
        if len(self._kept) > 64 and calls.gcclStreamQuery(self._open()) == 0:
            self._kept.clear()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        handle = self.__dict__.get("handle")
        if handle is None or not _exit.ours():
            return
        if calls.gcclStreamQuery(handle) == 0:
            self._release()
        else:  # neither wait for a peer in garbage collection, nor take the buffers away from the work
            _exit.leak(self._kept)


def handle_of(stream: Any) -> Optional[int]:
    """The handle of a stream of this package, torch, cupy or cuda.core, or a number."""
    if stream is None or isinstance(stream, int):
        return stream
    if isinstance(stream, Stream):
        return stream._open()
    for name in ("cuda_stream", "ptr", "handle"):
        value = getattr(stream, name, None)
        if value is not None:
            return int(value)
    protocol = getattr(stream, "__cuda_stream__", None)  # (version, handle), cuda.core
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    raise NcclInvalid(f"a {type(stream).__name__} is no stream: pass a gccl.Stream, a torch or cupy stream, or a handle")


def current_of(buffer: Any) -> Optional[int]:
    """The stream on which the owner of a CUDA buffer works now: torch's or cupy's current one, else the default stream."""
    owner = type(buffer).__module__.partition(".")[0]
    if owner == "torch":
        return sys.modules["torch"].cuda.current_stream(buffer.device).cuda_stream
    if owner == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream().ptr
    return None
