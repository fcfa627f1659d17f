"""The end of the interpreter, of communicators that nobody destroyed, and of forks.

What C owns is released by calls that are local and bounded (``ncclCommAbort``), so neither garbage collection nor exit waits
for another rank. An idle communicator leaves in order: its peers see no failure. A child that was forked after first use must
not touch the library: everything here looks at the process id first.
"""

from __future__ import annotations

import atexit
import os
import warnings

from ._library import calls

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional

_pid: Optional[int] = None
# Handles that are alive. Only single operations on them, which are atomic: a lock could be held when garbage collection calls.
_live: Dict[int, str] = {}  # communicators, with their names for warnings
_streams: Dict[int, bool] = {}
_leaked: List[Any] = []
_before: List[Callable[[], None]] = []


def begin() -> None:
    """The library has been opened in this process."""
    global _pid
    _pid = os.getpid()
    atexit.register(_end)


def ours() -> bool:
    """False in a forked child, where the library must not be called."""
    return os.getpid() == _pid


def opened(handle: int, name: str) -> None:
    """A communicator is there."""
    _live[handle] = name


def closed(handle: Optional[int]) -> bool:
    """The communicator is about to go. True for the first caller, who releases it."""
    return handle is not None and _live.pop(handle, None) is not None


def forget(handle: int, name: str) -> None:
    """For garbage collection: the object of a communicator that was not destroyed has gone."""
    if ours() and closed(handle):
        warnings.warn(f"{name} was never destroyed: call destroy(), or use it in a with statement", ResourceWarning, stacklevel=2)
        calls.ncclCommAbort(handle)


def stream_opened(handle: int) -> None:
    """A host stream is there."""
    _streams[handle] = True


def stream_closed(handle: int) -> bool:
    """The stream is about to go. True for the first caller, who releases it."""
    return _streams.pop(handle, False)


def leak(kept: List[Any]) -> None:
    """Work that nobody waited for is still running: its buffers stay until the process ends."""
    warnings.warn("a gccl.Stream went away with work left: call synchronize() or close()", ResourceWarning, stacklevel=3)
    _leaked.append(kept)


def first(end: Callable[[], None]) -> None:
    """Calls end at exit, before anything is released."""
    _before.append(end)


def _end() -> None:
    if not ours():
        return
    for end in _before:
        end()
    from . import _interrupt

    for handle in list(_live):
        if closed(handle):
            calls.ncclCommAbort(handle)  # ends what its streams wait for, too
    for handle in list(_streams):
        if stream_closed(handle):
            calls.gcclStreamDestroy(handle)
    _interrupt.unwatch()
