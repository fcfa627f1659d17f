"""What every call of a communicator shares: its handle, its failures, its buffers."""

from __future__ import annotations

from . import _group, _interrupt
from ._buffers import HOST, resolve
from ._errors import NcclInvalid, error_of
from ._library import get_error_string, last_error
from ._stream import Stream, current_of, handle_of
from ._types import NAMES

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, List, Optional

    from ._buffers import Resolved

IN_PROGRESS = 7


class Caller:
    """The part of a communicator that calls need."""

    _ptr: Optional[int]
    _kept: List[Any]
    _cuda: bool
    _plain: bool  # on host memory, and calls block
    nranks: int
    rank: int
    kind: str
    blocking: bool

    def _check(self, rc: int, call: str) -> None:
        if rc or _interrupt.pending:
            self._failed(rc, call)

    def _failed(self, rc: int, call: str) -> None:
        """For a call that did not simply succeed: raises what is to be raised."""
        _interrupt.finish()
        if rc in (0, IN_PROGRESS):
            return
        if self._ptr is None:
            raise error_of(4, call, f"{call}: {self!r}: it was destroyed, aborted, or is still being made (see wait())")
        text = last_error()
        if not text:
            text = last_error(self._ptr) or get_error_string(rc)
        raise error_of(rc, call, text)

    def _special(self, stream: Any, *used: Resolved) -> Optional[int]:
        """The stream of a call that is not the plain one: checks devices, keeps buffers alive until the work is done."""
        for r in used:
            if (r[3] == HOST) == self._cuda:
                raise NcclInvalid(
                    f"a buffer in {'host' if r[3] == HOST else 'CUDA'} memory on a {self.kind} communicator: make it with "
                    f"device={'host' if r[3] == HOST else 'cuda'!r}, or move the buffer"
                )
        if stream is None and self._cuda and used:
            stream = current_of(used[0][5])
        if isinstance(stream, Stream):
            stream.keep(self, *used)
        if _group.inside():
            _group.keep(self, *used)
        if not self.blocking:
            self._kept.append(used)
        return handle_of(stream)

    # A call is plain when its buffers are host memory on a blocking host communicator, outside any group, without a stream:
    # then nothing but the call itself is to be done. allreduce tests that in line, because it is what a small call costs.

    def _pair(self, call: str, send: Any, recv: Any, stream: Any, ratio: int = 1, inverse: bool = False) -> Any:
        """Resolves a send and a receive buffer of one type; recv has ratio times the elements of send (inverse: send has)."""
        s = resolve(send)
        if recv is None or recv is send:
            r = s
        else:
            r = resolve(recv)
            if r[2] != s[2]:
                raise NcclInvalid(f"{call}: sendbuf is {NAMES[s[2]]}, recvbuf {NAMES[r[2]]}: both must be of one type")
        few, many = (r[1], s[1]) if inverse else (s[1], r[1])
        if many != few * ratio:
            rule = f"{'sendbuf' if inverse else 'recvbuf'} must have {ratio} (nranks) times as many" if ratio != 1 else "they must be equal"
            raise NcclInvalid(f"{call}: sendbuf has {s[1]} elements, recvbuf {r[1]}: {rule}")
        if r[4]:
            raise NcclInvalid(f"{call}: the receive buffer is read-only")
        if r[3] != s[3]:
            raise NcclInvalid(f"{call}: sendbuf and recvbuf are on different devices")
        if not self._plain or s[3] != HOST or stream is not None or _group.open_groups:
            stream = self._special(stream, s, r)
        return s, r, stream

    def _one(self, call: str, buffer: Any, write: bool, stream: Any) -> Any:
        b = resolve(buffer)
        if write and b[4]:
            raise NcclInvalid(f"{call}: the receive buffer is read-only")
        if not self._plain or b[3] != HOST or stream is not None or _group.open_groups:
            stream = self._special(stream, b)
        return b, stream
