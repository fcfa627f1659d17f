"""Ranks as processes of this machine, for programs, examples and tests that need no launcher."""

from __future__ import annotations

import time

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Sequence

__all__ = ["RankFailed", "spawn"]


class RankFailed(RuntimeError):
    """A rank of :func:`spawn` failed.

    Attributes:
        rank: its number.
        detail: its traceback, or how its process ended.
    """

    def __init__(self, rank: int, detail: str) -> None:
        super().__init__(f"rank {rank} failed:\n{detail}")
        self.rank = rank
        self.detail = detail

    def __reduce__(self) -> Any:
        return RankFailed, (self.rank, self.detail)


def _rank(function: Callable[..., Any], nranks: int, rank: int, device: Optional[str], args: Sequence[Any], pipe: Any) -> None:
    """The program of one rank. The pipe carries the unique id and the outcome."""
    import traceback

    from ._communicator import Communicator, get_unique_id
    from ._types import UniqueId

    try:
        if rank == 0:
            unique_id = get_unique_id()
            pipe.send(("id", bytes(unique_id)))
        else:
            unique_id = UniqueId.from_bytes(pipe.recv())
        with Communicator.init(nranks, rank, unique_id, device=device) as comm:
            result = function(comm, *args)
        pipe.send(("ok", result))
    except KeyboardInterrupt:
        pipe.send(("failed", "KeyboardInterrupt"))
    except BaseException:
        pipe.send(("failed", traceback.format_exc()))


def spawn(
    function: Callable[..., Any], nranks: int, args: Sequence[Any] = (), *, device: Optional[str] = "host", timeout: float = 600.0
) -> List[Any]:
    """Runs ``function(comm, *args)`` as nranks ranks, each in a fresh process, and returns what they return, by rank.

    Args:
        function: importable by name (it is pickled), as with multiprocessing.
        device: "host", "cuda" or None, as in :meth:`Communicator.init`.
        timeout: seconds after which the ranks are ended.

    Raises:
        RankFailed: with the first failed rank's traceback. The others then have five seconds to end by themselves.
        TimeoutError: naming the ranks that were still running.
    """
    import multiprocessing.connection  # not for those who only import the package

    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for rank in range(nranks):
        here, there = context.Pipe()
        p = context.Process(target=_rank, args=(function, nranks, rank, device, tuple(args), there), name=f"gccl rank {rank}")
        p.start()
        there.close()
        pipes.append(here)
        processes.append(p)
    outcome: Dict[int, Any] = {}
    failed: Optional[RankFailed] = None
    end = time.monotonic() + timeout
    try:
        while len(outcome) < nranks and (failed is None or time.monotonic() < end):
            open_: Dict[Any, int] = {pipes[r]: r for r in range(nranks) if r not in outcome}
            ready: List[Any] = multiprocessing.connection.wait(list(open_), max(0.0, end - time.monotonic()))
            for pipe in ready:
                rank = open_[pipe]
                try:
                    kind, value = pipe.recv()
                except (EOFError, ConnectionResetError):
                    processes[rank].join(5)
                    kind, value = "failed", f"its process ended with code {processes[rank].exitcode}"
                if kind == "id":
                    for other in pipes[1:]:
                        other.send(value)
                    continue
                outcome[rank] = value
                if kind == "failed" and failed is None:
                    failed = RankFailed(rank, str(value))
                    end = min(end, time.monotonic() + 5)
            if time.monotonic() >= end and failed is None and len(outcome) < nranks:
                late = [r for r in range(nranks) if r not in outcome]
                raise TimeoutError(f"ranks {late} of {nranks} were still running after {timeout} s")
        for p in processes:
            p.join(max(0.0, end - time.monotonic()) if failed else 10)
    finally:
        for p in processes:
            if p.is_alive():
                p.kill()
            p.join()
        for pipe in pipes:
            pipe.close()
    if failed:
        raise failed
    return [outcome[r] for r in range(nranks)]
