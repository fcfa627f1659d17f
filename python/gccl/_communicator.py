"""Communicators: making and ending them, collectives, messages, one-sided operations.

The methods have nccl4py's names and argument order. What all of them share:

- A buffer is a numpy array, a torch tensor, or anything with ``__cuda_array_interface__``, DLPack or the buffer protocol,
  contiguous in C order. Counts are taken from it and checked before the library is called (:class:`NcclInvalid`).
- Without ``stream=`` a host communicator has done the work when the call returns; a CUDA one enqueues it on the current
  stream of torch or cupy. With ``stream=`` the call returns at once.
- A failure is an :class:`NCCLError` with the library's text. The interpreter lock is free while a call waits.
- On the main thread, Ctrl-C ends a waiting call with KeyboardInterrupt. The communicator has failed then, and its peers are
  told: abort it.
"""

from __future__ import annotations

import ctypes
import os
import time
import weakref

from . import _exit, _group, _interrupt
from ._call import IN_PROGRESS
from ._collectives import Collectives
from ._errors import NcclInvalid, error_of
from ._kind import Kind, device_kind
from ._library import calls, check, last_error
from ._onesided import OneSided
from ._types import (
    CommShrinkFlag,
    CommSuspendFlag,
    CStats,
    CUniqueId,
    NCCLConfig,
    NcclCommMemStat,
    UniqueId,
)

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, List, Optional, Sequence, Union

__all__ = ["Communicator", "get_unique_id"]



def get_unique_id(empty: bool = False) -> UniqueId:
    """Makes an id for one new communicator; hand it to all ranks. The process serves it, so it lives until all have joined.

    Args:
        empty: only a place for the bytes of another rank's id; the library is not called.
    """
    c = CUniqueId()
    if not empty:
        check(calls.ncclGetUniqueId(ctypes.byref(c)), "ncclGetUniqueId")
    return UniqueId(c)


def _ids(unique_id: Union[UniqueId, Sequence[UniqueId]]) -> List[UniqueId]:
    ids = [unique_id] if isinstance(unique_id, UniqueId) else list(unique_id)
    for i in ids:
        if not isinstance(i, UniqueId):
            raise TypeError(f"unique_id is a {type(i).__name__}: pass a gccl.UniqueId (UniqueId.from_bytes takes bytes)")
    if not ids:
        raise NcclInvalid("unique_id is an empty list: pass at least one id")
    return ids


def _c_config(config: Optional[NCCLConfig]) -> Any:
    return None if config is None else ctypes.byref(config.to_c())


def _blocking(config: Optional[NCCLConfig]) -> bool:
    chosen = os.environ.get("NCCL_COMM_BLOCKING")  # wins over the config, as in the library
    if chosen in ("0", "1"):
        return chosen == "1"
    return config is None or config.blocking is None or bool(config.blocking)


class Communicator(Collectives, OneSided):
    """One rank's view of a group of ranks. Make one with :meth:`init`, :meth:`init_all` or from another one.

    It is released by :meth:`destroy` (or the end of a with statement), :meth:`abort`, garbage collection (with a
    ResourceWarning) or the end of the process. A child of fork cannot use it. Threads may share it; calls of two threads at
    the same time have no order.
    """

    def __init__(self) -> None:
        self._ptr: Optional[int] = None
        self._box = ctypes.c_void_p()
        self._kept: List[Any] = []
        self._children: List["Communicator"] = []
        self._parent: Optional["Communicator"] = None
        self._gone: Any = None  # runs if nobody releases the handle

    # ---- Making ----------------------------------------------------------------------------------------------------

    @classmethod
    def init(
        cls,
        nranks: int,
        rank: int,
        unique_id: Union[UniqueId, Sequence[UniqueId]],
        config: Optional[NCCLConfig] = None,
        *,
        device: Optional[str] = None,
    ) -> "Communicator":
        """Joins a new communicator of nranks ranks as number rank (0 to nranks-1). All ranks call; blocks until all have come.

        Args:
            unique_id: the same on all ranks; several ids (made on different ranks, same order everywhere) spread the work.
            config: options. With ``blocking=False`` the call returns at once: :meth:`wait` for it.
            device: "host", "cuda", or None for ``GCCL_DEVICE`` and else what the machine has. A CUDA communicator uses the
                thread's current CUDA device. The same on all ranks.

        In a group, the communicator is ready after the group. Raises NCCLTimeout naming the ranks that did not come
        (``GCCL_INIT_TIMEOUT``), NCCLInvalidArgument for ranks out of range, NCCLInvalidUsage for ranks that differ.
        """
        comm = cls()
        comm.initialize(nranks, rank, unique_id, config, device=device)
        return comm

    def initialize(
        self,
        nranks: int,
        rank: int,
        unique_id: Union[UniqueId, Sequence[UniqueId]],
        config: Optional[NCCLConfig] = None,
        *,
        device: Optional[str] = None,
    ) -> None:
        """:meth:`init` of an object that exists already, so that another thread can abort it while it waits."""
        ids = _ids(unique_id)
        if self._box.value is not None:
            raise NcclInvalid("initialize: the communicator is made already")
        self._begin(nranks, rank, device_kind(device), _blocking(config))
        out = ctypes.byref(self._box)
        with Kind(self.kind):
            if len(ids) == 1:
                rc = calls.ncclCommInitRankConfig(out, nranks, ids[0]._c, rank, _c_config(config))
                call = "ncclCommInitRankConfig"
            else:
                array = (CUniqueId * len(ids))(*[i._c for i in ids])
                rc = calls.ncclCommInitRankScalable(out, nranks, rank, len(ids), array, _c_config(config))
                call = "ncclCommInitRankScalable"
        self._made(rc, call)

    @classmethod
    def init_all(cls, devices: Union[int, Sequence[int], None] = None, *, device: Optional[str] = None) -> List["Communicator"]:
        """Makes one communicator whose ranks are all in this process; drive them inside groups, or from a thread each.

        Args:
            devices: how many ranks, or the device number of each; None is one.
            device: as for :meth:`init`.

        Returns:
            The communicators by rank. Not allowed inside a group.
        """
        if _group.inside():
            raise NcclInvalid("init_all has no place in a group: call init for each rank there")
        numbers = None if devices is None or isinstance(devices, int) else [int(d) for d in devices]
        n = len(numbers) if numbers is not None else devices if isinstance(devices, int) else 1
        comms = [cls() for _ in range(n)]
        kind = device_kind(device)
        handles = (ctypes.c_void_p * max(n, 1))()
        with Kind(kind):
            array = None if numbers is None else (ctypes.c_int * n)(*numbers)
            rc = calls.ncclCommInitAll(handles, n, array)
        for r, comm in enumerate(comms):
            comm._begin(n, r, kind, True)
            comm._box = ctypes.c_void_p(handles[r])
        failure: Optional[BaseException] = None
        for comm in comms:
            try:
                comm._made(rc, "ncclCommInitAll")
            except BaseException as e:
                failure = failure or e
        if failure:
            raise failure
        return comms

    def _begin(self, nranks: int, rank: int, kind: str, blocking: bool) -> None:
        self.nranks = nranks
        self.rank = rank
        self.kind = kind
        self.blocking = blocking
        self._cuda = kind == "cuda"
        self._plain = blocking and not self._cuda
        _interrupt.watch()

    def _made(self, rc: int, call: str) -> None:
        """The making call has returned: take over the handle, or give it back and raise."""
        if _interrupt.pending or rc not in (0, IN_PROGRESS):
            error = error_of(rc, call, last_error()) if rc else None
            if self._box.value:
                calls.ncclCommAbort(self._box)
                self._box.value = None
            _interrupt.finish()
            if error:
                raise error
        if _group.inside():
            _group.keep(self)
            _group.at_end(lambda ran: self._settle() if ran else None)
        else:
            self._settle()

    def _settle(self) -> None:
        """Takes over the handle that the library has written."""
        handle = self._box.value
        if handle is None or handle == self._ptr:
            return
        self._ptr = handle
        name = repr(self)
        _exit.opened(handle, name)
        self._gone = weakref.finalize(self, _exit.forget, handle, name)
        self._gone.atexit = False  # _exit ends what is left, in its order

    def _child(self, config: Optional[NCCLConfig]) -> "Communicator":
        child = type(self)()
        child._begin(0, 0, self.kind, self.blocking if config is None or config.blocking is None else bool(config.blocking))
        child._parent = self
        return child

    def _adopt(self, child: "Communicator", rc: int, call: str) -> None:
        if rc == IN_PROGRESS:
            self._children.append(child)
        child._made(rc, call)
        if child._ptr is not None:
            child._ask_who()
        elif _group.inside():
            _group.at_end(lambda ran: child._ask_who() if ran and child._ptr else None)

    def _ask_who(self) -> None:
        count, rank = ctypes.c_int(), ctypes.c_int()
        self._check(calls.ncclCommCount(self._ptr, ctypes.byref(count)), "ncclCommCount")
        self._check(calls.ncclCommUserRank(self._ptr, ctypes.byref(rank)), "ncclCommUserRank")
        self.nranks, self.rank = count.value, rank.value

    def split(self, color: Optional[int] = None, key: int = 0, config: Optional[NCCLConfig] = None) -> Optional["Communicator"]:
        """Divides the communicator. Every rank calls; ranks of equal color form a child, ordered by key and then by rank.

        Returns:
            The child, or None for color None. The parent stays usable and is released by itself.
        """
        child = None if color is None else self._child(config)
        box = ctypes.c_void_p() if child is None else child._box
        rc = calls.ncclCommSplit(self._ptr, -1 if color is None else color, key, ctypes.byref(box), _c_config(config))
        if child is None:
            _group.keep(box) if _group.inside() else None
            self._check(rc, "ncclCommSplit")
            return None
        self._adopt(child, rc, "ncclCommSplit")
        return child

    def shrink(
        self,
        exclude_ranks: Optional[Sequence[int]] = None,
        config: Optional[NCCLConfig] = None,
        flag: CommShrinkFlag = CommShrinkFlag.DEFAULT,
    ) -> "Communicator":
        """Makes a child without some ranks. Only the ranks that stay call, and keep their order.

        Args:
            exclude_ranks: ranks of this communicator.
            flag: ABORT ends running operations first: the way to go on after a failure.
        """
        left = list(exclude_ranks or ())
        child = self._child(config)
        array = (ctypes.c_int * max(len(left), 1))(*left)
        rc = calls.ncclCommShrink(self._ptr, array, len(left), ctypes.byref(child._box), _c_config(config), int(flag))
        self._adopt(child, rc, "ncclCommShrink")
        return child

    def get_unique_id(self) -> UniqueId:
        """Makes an id with which new ranks can join: for one :meth:`grow`."""
        c = CUniqueId()
        self._check(calls.ncclCommGetUniqueId(self._ptr, ctypes.byref(c)), "ncclCommGetUniqueId")
        return UniqueId(c)

    def grow(
        self, nranks: int, unique_id: Optional[UniqueId] = None, rank: Optional[int] = None, config: Optional[NCCLConfig] = None
    ) -> "Communicator":
        """Makes a larger communicator of nranks ranks, in which ranks of this one keep their numbers.

        Ranks of this communicator call without rank; new ranks call :meth:`join`. The parent is released by its owner.
        """
        child = self._child(config)
        id_ = None if unique_id is None else ctypes.byref(unique_id._c)
        rc = calls.ncclCommGrow(self._ptr, nranks, id_, -1 if rank is None else rank, ctypes.byref(child._box), _c_config(config))
        self._adopt(child, rc, "ncclCommGrow")
        return child

    @classmethod
    def join(
        cls, nranks: int, rank: int, unique_id: UniqueId, config: Optional[NCCLConfig] = None, *, device: Optional[str] = None
    ) -> "Communicator":
        """Joins a communicator that grows (:meth:`grow`) as its new number rank, with the id of :meth:`get_unique_id`."""
        comm = cls()
        comm._begin(nranks, rank, device_kind(device), _blocking(config))
        with Kind(comm.kind):
            rc = calls.ncclCommGrow(None, nranks, ctypes.byref(unique_id._c), rank, ctypes.byref(comm._box), _c_config(config))
        comm._made(rc, "ncclCommGrow")
        return comm

    # ---- Ending ----------------------------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Waits for this rank's work and releases the communicator. Local; twice is once.

        Of a failed communicator it raises the failure, and releases it all the same.
        """
        if self._ptr is None and self._box.value is None:
            return
        rc = self._end(calls.ncclCommDestroy)
        if _group.inside() or rc == 0:
            return
        _interrupt.finish()
        check(rc, "ncclCommDestroy")

    def abort(self) -> None:
        """Ends running operations without waiting for other ranks, and releases the communicator. Bounded; twice is once.

        Allowed in every state, and from another thread than the one that is stuck.
        """
        self._settle()
        if self._ptr is not None:
            rc = self._end(calls.ncclCommAbort)
            _interrupt.pending.clear()
            check(rc, "ncclCommAbort")

    def _end(self, how: Any) -> int:
        self._settle()
        handle, self._ptr = self._ptr, None
        self._box.value = None
        if handle is None or not self._gone.detach():  # another thread was first
            return 0
        if not _exit.ours():
            raise error_of(5, "ncclCommDestroy", "this process was forked from the one that made the communicator")
        if not _exit.closed(handle):
            return 0
        rc = how(handle)
        if rc and how is not calls.ncclCommAbort and not _group.inside():
            text = last_error()
            calls.ncclCommAbort(handle)
            _interrupt.finish()
            raise error_of(rc, "ncclCommDestroy", text)
        self._kept.clear()
        return rc

    def meet_on_host(self, on: bool = True) -> None:
        """Calls on GPU memory that follow wait in the calling thread for the other processes, not in the stream: streams share a few
        hardware queues, and one that waits on the GPU holds up the others of its queue. For communicators that have a thread of
        their own. All ranks set it alike; calls in captures ignore it.
        """
        self._check(calls.gcclCommMeetOnHost(self._ptr, int(on)), "gcclCommMeetOnHost")

    def finalize(self) -> None:
        """Finishes outstanding work; afterwards only destroy and abort are allowed."""
        self._check(calls.ncclCommFinalize(self._ptr), "ncclCommFinalize")

    def revoke(self, flags: int = 0) -> None:
        """Ends running operations, of other threads too, but keeps the communicator: it can be shrunk, split, destroyed."""
        self._check(calls.ncclCommRevoke(self._ptr, flags), "ncclCommRevoke")

    def suspend(self, flags: CommSuspendFlag = CommSuspendFlag.MEM) -> None:
        """Releases the communicator's memory. Every rank calls; it is not used until :meth:`resume`."""
        self._check(calls.ncclCommSuspend(self._ptr, int(flags)), "ncclCommSuspend")

    def resume(self) -> None:
        """Brings back what :meth:`suspend` released. Every rank calls."""
        self._check(calls.ncclCommResume(self._ptr), "ncclCommResume")

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.destroy()
        else:
            self.abort()

    # ---- Asking ----------------------------------------------------------------------------------------------------

    @property
    def ptr(self) -> int:
        """The C handle (``ncclComm_t``), 0 when released."""
        return self._ptr or 0

    @property
    def is_valid(self) -> bool:
        """Whether it is made and not yet released."""
        return self._ptr is not None

    @property
    def device(self) -> int:
        """Number of the CUDA device; 0 in host mode."""
        n = ctypes.c_int()
        self._check(calls.ncclCommCuDevice(self._ptr, ctypes.byref(n)), "ncclCommCuDevice")
        return n.value

    cuda_dev = device

    def get_async_error(self) -> int:
        """The state: 0 ready, 7 while a nonblocking call or its work runs, else the code of the first failure. Any thread."""
        state = ctypes.c_int()
        self._settle()
        check(calls.ncclCommGetAsyncError(self._ptr, ctypes.byref(state)), "ncclCommGetAsyncError")
        return state.value

    def get_last_error(self) -> str:
        """Text of the first failure of this communicator, else of the last error of the thread."""
        return last_error(self._ptr)

    def wait(self, timeout: Optional[float] = None) -> None:
        """Waits until a nonblocking communicator is no longer in progress.

        Args:
            timeout: seconds; None waits as long as it takes. TimeoutError when they are over; nothing is ended by that.

        Raises:
            NCCLError: the failure of what was in progress.
        """
        if self._parent is not None and self._box.value is None:
            self._parent.wait(timeout)
        end, nap = None if timeout is None else time.monotonic() + timeout, 1e-5
        while True:
            state = self.get_async_error()
            if state != IN_PROGRESS:
                break
            if end is not None and time.monotonic() > end:
                raise TimeoutError(f"{self!r} is still in progress after {timeout} s")
            time.sleep(nap)
            nap = min(nap * 2, 0.002)
        if state:
            raise error_of(state, "ncclCommGetAsyncError", last_error(self._ptr))
        self._kept.clear()
        for child in self._children:
            child._settle()
            if child._ptr is not None:
                child._ask_who()
        self._children.clear()

    def get_mem_stat(self, stat: NcclCommMemStat) -> int:
        """A figure of the memory that the communicator holds, in bytes."""
        value = ctypes.c_uint64()
        self._check(calls.ncclCommMemStats(self._ptr, int(stat), ctypes.byref(value)), "ncclCommMemStats")
        return value.value

    def stats(self) -> dict:
        """Counters since it was made: calls, table_hits, table_misses, bytes, shared_bytes, private_bytes, front_nanoseconds."""
        c = CStats()
        self._check(calls.gcclCommGetStats(self._ptr, ctypes.byref(c)), "gcclCommGetStats")
        return {name: getattr(c, name) for name, _ in CStats._fields_[3:]}

    def __repr__(self) -> str:
        state = f"rank {self.rank} of {self.nranks}, {self.kind}" if "rank" in self.__dict__ else "empty"
        return f"<gccl.Communicator {state}{'' if self._ptr is not None else ', not usable'}>"

    def __reduce__(self) -> Any:
        raise TypeError("a communicator belongs to its process: send the UniqueId and make one there")
