"""``python -m gccl.demo``: four ranks on this machine's CPUs, checked all-reduces of growing size, a table with a progress bar."""

from __future__ import annotations

import argparse
import sys
import time

import gccl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple

BAR = 24


def sizes(largest: int) -> List[int]:
    """Bytes: 8, 64, 512, ... up to largest."""
    found, n = [], 8
    while n <= largest:
        found.append(n)
        n *= 8
    return found


def say(text: str) -> None:
    """One piece of output, now. Only rank 0 has something to say."""
    sys.stdout.write(text)
    sys.stdout.flush()


def bar(done: int, of: int) -> None:
    """Draws the progress bar over itself, on a terminal only."""
    if sys.stdout.isatty():
        full = BAR * done // of
        say(f"\r[{'#' * full}{'.' * (BAR - full)}] {done}/{of}\x1b[K" if done < of else "\r\x1b[K")


def measure(comm: gccl.Communicator, nbytes: int) -> Tuple[float, int]:
    """Seconds of one all-reduce of nbytes, the slowest rank's mean, and how many elements are wrong on any rank."""
    from array import array

    n = nbytes // 4
    send, recv = array("f", [comm.rank + 1.0]) * n, array("f", bytes(nbytes))
    comm.allreduce(send, recv)
    right = comm.nranks * (comm.nranks + 1) / 2
    wrong = array("q", [n - recv.count(right)])
    repeat = max(3, min(200, (16 << 20) // nbytes))
    start = time.perf_counter()
    for _ in range(repeat):
        comm.allreduce(send, recv)
    took = array("d", [(time.perf_counter() - start) / repeat])
    comm.allreduce(took, op=gccl.MAX)
    comm.allreduce(wrong)
    return took[0], wrong[0]


def rank_main(comm: gccl.Communicator, largest: int) -> int:
    """What each rank does; returns how many elements were wrong."""
    todo, total = sizes(largest), 0
    if comm.rank == 0:
        say(f"{'bytes':>10} {'time us':>12} {'bus GB/s':>10} {'wrong':>6}\n")
    for k, nbytes in enumerate(todo):
        if comm.rank == 0:
            bar(k, len(todo))
        seconds, wrong = measure(comm, nbytes)
        total += wrong
        if comm.rank == 0:
            bus = nbytes / seconds * 2 * (comm.nranks - 1) / comm.nranks / 1e9
            bar(len(todo), len(todo))
            say(f"{nbytes:>10} {seconds * 1e6:>12.1f} {bus:>10.2f} {wrong:>6}\n")
    return total


def main() -> int:
    """The command."""
    arguments = argparse.ArgumentParser(prog="python -m gccl.demo", description="checked all-reduces of ranks on this machine's CPUs")
    arguments.add_argument("-n", "--ranks", type=int, default=4, help="processes (default 4)")
    arguments.add_argument("-e", "--largest", type=int, default=16 << 20, metavar="BYTES", help="largest message (default 16 MiB)")
    a = arguments.parse_args()
    info = gccl.library_info()
    say(f"GCCL {info.version}, {info.path} ({info.loaded_by}), {a.ranks} ranks as processes\n")
    wrong = gccl.spawn(rank_main, a.ranks, (a.largest,))[0]
    say("all results are right\n" if wrong == 0 else f"{wrong} elements are wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
