"""Groups: calls that run together.

The library collects the calls of a thread between start and end. Python adds what C does not know: buffers stay alive until
the end, results that become valid there are filled in then, and a group whose body raised is dropped instead of run.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading

from . import _interrupt
from ._errors import error_of
from ._library import calls, check, last_error
from ._types import CSimInfo

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, List, Optional

__all__ = ["GroupSimInfo", "group", "group_end", "group_start"]

open_groups = 0  # of all threads: lets a call outside any group skip the look at its thread's


class _Thread(threading.local):
    depth = 0

    def __init__(self) -> None:
        self.kept: List[Any] = []
        self.at_end: List[Callable[[bool], None]] = []


_thread = _Thread()


class GroupSimInfo:
    """What :func:`group_end` estimates with simulate=True."""

    def __init__(self, estimated_time: float) -> None:
        self.estimated_time = estimated_time
        """Microseconds; -1 where nothing could be estimated."""

    def __repr__(self) -> str:
        return f"GroupSimInfo(estimated_time={self.estimated_time})"


def inside() -> bool:
    """Whether the calling thread has an open group."""
    return open_groups > 0 and _thread.depth > 0


def keep(*things: Any) -> None:
    """Keeps things alive until the end of the calling thread's group."""
    _thread.kept.append(things)


def at_end(settle: Callable[[bool], None]) -> None:
    """Calls settle(True) when the group has run, settle(False) when it was dropped or failed."""
    _thread.at_end.append(settle)


def group_start() -> None:
    """Opens a group on the calling thread. Groups nest; only the outermost end acts."""
    global open_groups
    check(calls.ncclGroupStart(), "ncclGroupStart")
    _thread.depth += 1
    open_groups += 1


def group_end(*, simulate: bool = False) -> Optional[GroupSimInfo]:
    """Closes a group; the outermost one starts everything that was collected, as if at once.

    Args:
        simulate: start nothing, drop the work, and return its estimated time.

    Raises:
        NCCLError: of the last call in the group that failed, or of the work; nothing of the group runs in the first case.
    """
    return _end(CSimInfo() if simulate else None)


def _end(info: Optional[CSimInfo]) -> Optional[GroupSimInfo]:
    global open_groups
    rc = calls.ncclGroupEnd() if info is None else calls.ncclGroupSimulateEnd(ctypes.byref(info))
    if _thread.depth:
        _thread.depth -= 1
        open_groups -= 1
    if _thread.depth == 0:
        waiting, _thread.at_end = _thread.at_end, []
        _thread.kept = []
        text = last_error() if rc not in (0, 7) else ""
        for settle in waiting:
            settle(info is None and rc in (0, 7))
        _interrupt.finish()
        if text:
            raise error_of(rc, "ncclGroupEnd", text)
    check(rc, "ncclGroupEnd")
    return None if info is None else GroupSimInfo(info.estimated_time)


@contextlib.contextmanager
def group() -> Iterator[None]:
    """``with gccl.group():`` — the calls in the body run together at its end; if the body raises, none of them runs.

    Needed where one thread drives several ranks, for messages that must run side by side, and for messages to oneself.
    Outputs are valid after the block.
    """
    group_start()
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # the body's exception is the one to see
            _end(CSimInfo())
        raise
    group_end()
