"""Ctrl-C during a blocking call.

A call of the library blocks in C, where Python runs no signal handlers. The main thread therefore gives the library a function
to ask about every 50 ms while it waits (``gcclSetInterrupt``). The function runs Python's handlers; if one raises
(KeyboardInterrupt by default), the exception is kept, the communicator fails, the call returns, and :func:`finish` raises it.
A handler that returns lets the wait go on, as with Python's own system calls (PEP 475).
"""

from __future__ import annotations

import ctypes
import threading

from ._library import ASK, calls

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Generator, List, Optional

pending: List[BaseException] = []
_ask: Optional[object] = None  # the library calls it for as long as it is set


def _handlers() -> Generator[int, None, None]:
    """Each resumption runs what signal handlers are due.

    A generator, because Python may run a handler at any bytecode: here all of them are within the try. A function would have
    some before its try, and what is raised there is lost.
    """
    due = ctypes.pythonapi.PyErr_CheckSignals
    while True:
        try:
            yield 1 if pending else 0
            due()
        except GeneratorExit:
            return
        except BaseException as e:  # whatever a handler raises
            pending.append(e)


def watch() -> None:
    """Makes the calling thread's waits end with its signals. Only the main thread gets any."""
    global _ask
    if _ask is not None or threading.current_thread() is not threading.main_thread():
        return
    asked = _handlers()
    next(asked)
    _ask = ASK(asked.send)
    calls.gcclSetInterrupt(_ask, None)


def unwatch() -> None:
    """Takes the function away again; on the thread that called :func:`watch`."""
    global _ask
    if _ask is not None:
        calls.gcclSetInterrupt(ASK(), None)
        _ask = None


def finish() -> None:
    """Raises what a handler has raised during the call that has just ended."""
    if pending:
        e = pending[0]
        pending.clear()
        raise e
