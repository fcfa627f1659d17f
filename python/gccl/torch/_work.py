"""Work that runs in order: what a process group's calls become.

A channel is one communicator with a queue. Its jobs are run one at a time, by its thread, or by whoever waits for one: a
synchronous call so needs no other thread to wake up. Calls of the library release the interpreter lock, so a channel's thread
communicates while the program computes.
"""

from __future__ import annotations

import collections
import datetime
import queue
import threading
import time
import weakref

import torch
from torch._C._distributed_c10d import Work

from .._communicator import Communicator
from .._errors import NCCLError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Deque, List, Optional

    Job = Callable[[Communicator], None]


class Channel:
    """A communicator that is made by its first job, and the queue of what it is to do.

    Args:
        name: for error texts.
        make: called with an empty communicator to initialize it; may wait for the other ranks.
        timeout: seconds that a job may take before its communicator is aborted.
    """

    def __init__(self, name: str, make: Job, timeout: float) -> None:
        self.name = name
        self.timeout = timeout
        self._make = make
        self._comm: Optional[Communicator] = None
        self._failure: Optional[BaseException] = None
        self._jobs: Deque[GcclWork] = collections.deque()
        self._turn = threading.Lock()  # held by whoever runs a job
        self._wake: Any = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None
        self.running: Optional[GcclWork] = None  # for the watch
        self.since = 0.0
        self.stream: Any = None  # of CUDA messages

    def submit(self, work: GcclWork, now: bool) -> None:
        """Enqueues a job. now: somebody has to run it even if nobody waits for it."""
        self._jobs.append(work)
        _watch.add(self)
        if now:
            self.wake()

    def wake(self) -> None:
        """Lets the channel's thread run a job."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=f"gccl {self.name}", daemon=True)
            self._thread.start()
        self._wake.put(True)

    def _serve(self) -> None:
        while self._wake.get():
            with self._turn:
                self._next()

    def help(self, work: GcclWork) -> None:
        """Runs jobs until work is done, unless another thread is at it."""
        while not work.done and self._turn.acquire(False):
            try:
                self._next()
            finally:
                self._turn.release()

    def _next(self) -> None:
        """Runs the first job, if there is one. The turn is held."""
        if not self._jobs:
            return
        work = self._jobs.popleft()
        self.running, self.since = work, time.monotonic()
        error: Optional[BaseException] = None
        try:
            if self._failure is not None:
                raise RuntimeError(f"{work.what}: {self.name} has failed before: {self._failure}")
            if self._comm is None:
                self._comm = Communicator()
            if not self._comm.is_valid:
                self._make(self._comm)
            work.job(self._comm)
        except BaseException as e:
            error = e
            if work.expired:
                limit = work.limit(self.timeout)
                error = TimeoutError(f"{work.what}: {self.name}: not done within {limit} s, the communicator was aborted: {e}")
            if isinstance(e, NCCLError) or not isinstance(e, Exception):
                self._failure = error
        self.running = None
        work.finish(error)
        if error is not None and not isinstance(error, Exception):
            raise error  # KeyboardInterrupt, of the main thread

    def expire(self) -> None:
        """Ends the running job; called by the watch, on its thread."""
        work, comm = self.running, self._comm
        if work is not None and comm is not None:
            work.expired = True
            comm.abort()

    def close(self, error: bool = False) -> None:
        """Ends what runs, fails what waits, ends the thread. error: as after a failure, else an idle communicator leaves in order."""
        self._failure = self._failure or RuntimeError("the process group was shut down")
        self._wake.put(False)
        comm = self._comm
        if comm is not None and (error or self.running is not None or (comm.is_valid and comm.get_async_error())):
            comm.abort()
        with self._turn:
            while self._jobs:
                self._next()
            if self._comm is not None and self._comm.is_valid:
                self._comm.destroy()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(5)
        _watch.remove(self)


class _Watch:
    """One thread that ends jobs which take too long."""

    def __init__(self) -> None:
        self._channels: weakref.WeakSet[Channel] = weakref.WeakSet()
        self._thread: Optional[threading.Thread] = None

    def add(self, channel: Channel) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="gccl watch", daemon=True)
            self._thread.start()
        if channel not in self._channels:
            self._channels.add(channel)

    def remove(self, channel: Channel) -> None:
        self._channels.discard(channel)

    def _run(self) -> None:
        while True:
            time.sleep(0.5)
            for channel in list(self._channels):
                work, since = channel.running, channel.since
                if work is not None and not work.expired and time.monotonic() - since > work.limit(channel.timeout):
                    if work is channel.running:
                        channel.expire()


_watch = _Watch()


class GcclWork(Work):
    """What an asynchronous call returns. wait() raises the call's failure."""

    def __init__(self, channel: Optional[Channel], what: str, job: Optional[Job], outputs: List[torch.Tensor], timeout: Any = None) -> None:
        super().__init__()
        self.what = what
        self.done = job is None
        self.expired = False
        self.error: Optional[BaseException] = None
        self.job: Any = job
        self._channel = channel
        self._outputs = outputs
        self._timeout = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else 0
        self._futures: List[torch.futures.Future] = []
        self._event: Optional[threading.Event] = None

    def limit(self, otherwise: float) -> float:
        """Seconds that the job may take."""
        return self._timeout if 0 < self._timeout < otherwise else otherwise

    def finish(self, error: Optional[BaseException]) -> None:
        """The job has ended."""
        self.error = error
        self.job = None
        self.done = True
        event = self._event  # set by a waiter before it looks at done again
        if event is not None:
            event.set()
        self._settle()

    def _settle(self) -> None:
        while self._futures:
            try:
                future = self._futures.pop()
            except IndexError:  # another thread was quicker
                return
            if self.error is None:
                future.set_result(self._outputs)
            else:
                future.set_exception(self.error)

    def wait(self, timeout: Any = None) -> bool:
        """Waits, runs the job if nobody has begun it, and raises its failure. Ctrl-C ends it on the main thread."""
        if not self.done:
            assert self._channel is not None
            self._channel.help(self)
            if not self.done:
                self._event = threading.Event()
                self._channel.wake()  # another thread has the turn, and may stop before this job
                limit = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) and timeout else None
                if not self.done and not self._event.wait(limit) and not self.done:
                    raise TimeoutError(f"{self.what}: not done within {limit} s")
        if self.error is not None:
            raise self.error
        return True

    def synchronize(self) -> None:
        self.wait()

    def _start(self) -> None:
        """Somebody looks for the result without waiting here."""
        if not self.done and self._channel is not None:
            self._channel.wake()

    def is_completed(self) -> bool:
        self._start()
        return self.done

    def is_success(self) -> bool:
        return self.done and self.error is None

    def exception(self) -> Any:
        return self.error

    def result(self) -> List[torch.Tensor]:
        """The outputs of a call that is done."""
        self.wait()
        return self._outputs

    def source_rank(self) -> int:
        return -1

    def _future(self) -> torch.futures.Future:
        return torch.futures.Future()

    def get_future(self) -> torch.futures.Future:
        """A future of the outputs."""
        future = self._future()
        self._futures.append(future)
        self._start()
        if self.done:
            self._settle()
        return future


class CudaWork(Work):
    """A call on CUDA tensors, which the stream has: waiting orders the current stream behind it."""

    def __init__(self, outputs: List[torch.Tensor]) -> None:
        super().__init__()
        self._outputs = outputs
        self._event = torch.cuda.Event()
        self._event.record()
        self._future: torch.futures.Future = torch.futures.Future(devices=[outputs[0].device])
        self._future.set_result(outputs)

    def wait(self, timeout: Any = None) -> bool:
        torch.cuda.current_stream(self._outputs[0].device).wait_event(self._event)
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._event.query()

    def is_success(self) -> bool:
        return True

    def result(self) -> List[torch.Tensor]:
        return self._outputs

    def get_future(self) -> torch.futures.Future:
        return self._future


def bind(device: torch.device) -> None:
    """Makes a device and its context the calling thread's, for calls that do not go through torch."""
    torch.cuda.set_device(device)
    torch.cuda.current_stream(device).query()  # the first call of a thread that needs the context; set_device may do nothing


class CudaMessage(GcclWork):
    """A message between CUDA tensors: on a stream of its channel, because one that is behind another on the current stream would wait for
    it, and with it for a peer that waits for this one. The channel's thread enqueues it, and waits on the host until the other end has come
    (meet_on_host): a stream that waited for it on the GPU would hold up the streams that share its hardware queue, the current one perhaps."""

    def __init__(self, channel: Channel, what: str, job: Job, tensor: torch.Tensor, *used: torch.Tensor) -> None:
        device = tensor.device
        if channel.stream is None:
            channel.stream = torch.cuda.Stream(device)
        self._stream = stream = channel.stream
        self._after = after = torch.cuda.Event()
        before = torch.cuda.Event()
        before.record(torch.cuda.current_stream(device))
        for t in (tensor, *used):
            t.record_stream(stream)

        def on_its_stream(comm: Communicator) -> None:
            with torch.cuda.device(device), torch.cuda.stream(stream):
                stream.wait_event(before)
                job(comm)
                after.record(stream)

        super().__init__(channel, what, on_its_stream, [tensor])

    def wait(self, timeout: Any = None) -> bool:
        super().wait(timeout)  # it is enqueued
        torch.cuda.current_stream(self._outputs[0].device).wait_event(self._after)
        return True

    def is_completed(self) -> bool:
        return super().is_completed() and (self.error is not None or self._after.query())

    def _future(self) -> torch.futures.Future:
        return torch.futures.Future(devices=[self._outputs[0].device])

    def _settle(self) -> None:
        with torch.cuda.stream(self._stream):  # what a future's user has to wait for
            super()._settle()


class AllWork(Work):
    """Several calls as one."""

    def __init__(self, works: List[Any]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: Any = None) -> bool:
        for w in self._works:
            w.wait()
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return all(w.is_completed() for w in self._works)

    def is_success(self) -> bool:
        return all(w.is_success() for w in self._works)

    def result(self) -> List[torch.Tensor]:
        return [t for w in self._works for t in w.result()]

    def get_future(self) -> torch.futures.Future:
        if len(self._works) == 1:
            return self._works[0].get_future()
        return torch.futures.collect_all([w.get_future() for w in self._works])
