"""Collectives and messages of a communicator; the text of _communicator.py says what they share."""

from __future__ import annotations

from . import _group, _interrupt
from ._buffers import HOST, resolve
from ._call import Caller
from ._errors import NcclInvalid
from ._library import calls
from ._types import NcclRedOp

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, Optional, Union

    from ._resources import CustomRedOp

    Op = Union[NcclRedOp, CustomRedOp, int]


class Collectives(Caller):
    """A communicator's collectives and messages."""

    # ---- Collectives -----------------------------------------------------------------------------------------------

    def allreduce(self, sendbuf: Any, recvbuf: Any = None, op: Op = NcclRedOp.SUM, *, stream: Any = None) -> None:
        """Combines sendbuf of all ranks element by element into recvbuf, bit for bit the same on all.

        Args:
            sendbuf, recvbuf: same type and number of elements; recvbuf None or the same object is in place.
            op: SUM, PROD, MAX, MIN, AVG, or of :meth:`create_pre_mul_sum`.
            stream: see the module's text.
        """
        source, count, code, device, readonly, _ = resolve(sendbuf)
        target, plain = source, self._plain and device == HOST
        if recvbuf is not None and recvbuf is not sendbuf:
            target, n, kind, where, readonly, _ = resolve(recvbuf)
            plain = plain and n == count and kind == code and where == HOST
        if not plain or readonly or stream is not None or _group.open_groups:
            s, r, stream = self._pair("allreduce", sendbuf, recvbuf, stream)
            source, count, code, target = s[0], s[1], s[2], r[0]
        rc = calls.ncclAllReduce(source, target, count, code, op, self._ptr, stream)
        if rc or _interrupt.pending:
            self._failed(rc, "ncclAllReduce")

    def reduce(self, sendbuf: Any, recvbuf: Any = None, op: Op = NcclRedOp.SUM, root: Optional[int] = None, *, stream: Any = None) -> None:
        """Combines sendbuf of all ranks into recvbuf of root; other ranks may pass recvbuf None. root None is :meth:`allreduce`."""
        if root is None:
            self.allreduce(sendbuf, recvbuf, op, stream=stream)
            return
        if self.rank == root:
            s, r, stream = self._pair("reduce", sendbuf, recvbuf, stream)
            out = r[0]
        else:
            s, stream = self._one("reduce", sendbuf, False, stream)
            out = None
        self._check(calls.ncclReduce(s[0], out, s[1], s[2], op, root, self._ptr, stream), "ncclReduce")

    def broadcast(self, sendbuf: Any, recvbuf: Any = None, root: int = 0, *, stream: Any = None) -> None:
        """Copies sendbuf of root to recvbuf on all ranks. recvbuf None is in place; other ranks may pass sendbuf None."""
        if recvbuf is None:
            recvbuf = sendbuf
        if self.rank == root:
            s, r, stream = self._pair("broadcast", sendbuf, recvbuf, stream)
        else:
            r, stream = self._one("broadcast", recvbuf, True, stream)
            s = r
        self._check(calls.ncclBroadcast(s[0], r[0], r[1], r[2], root, self._ptr, stream), "ncclBroadcast")

    def allgather(self, sendbuf: Any, recvbuf: Any, *, stream: Any = None) -> None:
        """Collects sendbuf of each rank into recvbuf, ordered by rank: recvbuf has nranks times as many elements.

        In place when sendbuf is the part of recvbuf at rank.
        """
        s, r, stream = self._pair("allgather", sendbuf, recvbuf, stream, self.nranks)
        self._check(calls.ncclAllGather(s[0], r[0], s[1], s[2], self._ptr, stream), "ncclAllGather")

    def reduce_scatter(self, sendbuf: Any, recvbuf: Any, op: Op = NcclRedOp.SUM, *, stream: Any = None) -> None:
        """Combines sendbuf of all ranks and leaves part r on rank r: sendbuf has nranks times the elements of recvbuf."""
        s, r, stream = self._pair("reduce_scatter", sendbuf, recvbuf, stream, self.nranks, True)
        self._check(calls.ncclReduceScatter(s[0], r[0], r[1], r[2], op, self._ptr, stream), "ncclReduceScatter")

    def alltoall(self, sendbuf: Any, recvbuf: Any, *, stream: Any = None) -> None:
        """Sends part r of sendbuf to rank r, receives part s of recvbuf from rank s. Equal sizes, divisible by nranks; not in place."""
        s, r, stream = self._pair("alltoall", sendbuf, recvbuf, stream)
        if s[1] % self.nranks:
            raise NcclInvalid(f"alltoall: {s[1]} elements do not divide into {self.nranks} equal parts")
        self._check(calls.ncclAlltoAll(s[0], r[0], s[1] // self.nranks, s[2], self._ptr, stream), "ncclAlltoAll")

    def gather(self, sendbuf: Any, recvbuf: Any = None, root: Optional[int] = None, *, stream: Any = None) -> None:
        """Collects sendbuf of each rank into recvbuf of root (nranks times as many elements). root None is :meth:`allgather`."""
        if root is None:
            self.allgather(sendbuf, recvbuf, stream=stream)
            return
        if self.rank == root:
            s, r, stream = self._pair("gather", sendbuf, recvbuf, stream, self.nranks)
            out = r[0]
        else:
            s, stream = self._one("gather", sendbuf, False, stream)
            out = None
        self._check(calls.ncclGather(s[0], out, s[1], s[2], root, self._ptr, stream), "ncclGather")

    def scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0, *, stream: Any = None) -> None:
        """Sends part r of root's sendbuf (nranks times the elements of recvbuf) to recvbuf of rank r; elsewhere sendbuf may be None."""
        if self.rank == root:
            s, r, stream = self._pair("scatter", sendbuf, recvbuf, stream, self.nranks, True)
            source = s[0]
        else:
            r, stream = self._one("scatter", recvbuf, True, stream)
            source = None
        self._check(calls.ncclScatter(source, r[0], r[1], r[2], root, self._ptr, stream), "ncclScatter")

    # ---- Messages --------------------------------------------------------------------------------------------------

    def send(self, sendbuf: Any, peer: int, *, stream: Any = None) -> None:
        """Sends to peer, which receives as many elements of the same type. Messages of a pair match in order; there are no tags.

        Waits for the receiver. Messages that must run side by side, and those to oneself, stand in one group.
        """
        s, stream = self._one("send", sendbuf, False, stream)
        self._check(calls.ncclSend(s[0], s[1], s[2], peer, self._ptr, stream), "ncclSend")

    def recv(self, recvbuf: Any, peer: int, *, stream: Any = None) -> None:
        """Receives from peer; see :meth:`send`."""
        r, stream = self._one("recv", recvbuf, True, stream)
        self._check(calls.ncclRecv(r[0], r[1], r[2], peer, self._ptr, stream), "ncclRecv")
