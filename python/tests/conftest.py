"""Ranks for the tests: processes that live as long as the session and run what a test sends them."""

import multiprocessing
import os
import sys
import traceback

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEADLINE = 60  # seconds a test's ranks may take, on a slow and busy machine


def _serve(nranks, rank, pipe):
    """A rank's process: joins, then runs functions until the pipe closes."""
    import gccl

    if rank == 0:
        unique_id = gccl.get_unique_id()
        pipe.send(bytes(unique_id))
    else:
        unique_id = gccl.UniqueId.from_bytes(pipe.recv())
    comm = gccl.Communicator.init(nranks, rank, unique_id, device="host")
    while True:
        try:
            function, args = pipe.recv()
        except EOFError:
            break
        try:
            pipe.send((True, function(comm, *args)))
        except BaseException:
            pipe.send((False, traceback.format_exc()))
    comm.destroy()


class Ranks:
    """nranks processes with one communicator."""

    def __init__(self, nranks):
        context = multiprocessing.get_context("spawn")
        self.nranks, self.pipes, self.processes = nranks, [], []
        for rank in range(nranks):
            here, there = context.Pipe()
            p = context.Process(target=_serve, args=(nranks, rank, there), daemon=True)
            p.start()
            there.close()
            self.pipes.append(here)
            self.processes.append(p)
        unique_id = self._receive(0)
        for pipe in self.pipes[1:]:
            pipe.send(unique_id)

    def _receive(self, rank):
        if not self.pipes[rank].poll(DEADLINE):
            self.kill()
            pytest.fail(f"rank {rank} of {self.nranks} has not answered within {DEADLINE} s")
        return self.pipes[rank].recv()

    def run(self, function, *args):
        """function(comm, *args) on every rank; returns the results by rank, or fails with the first rank's traceback."""
        for pipe in self.pipes:
            pipe.send((function, args))
        answers = [self._receive(rank) for rank in range(self.nranks)]
        for rank, (good, value) in enumerate(answers):
            if not good:
                self.kill()  # what the communicator's state is now, nobody knows
                pytest.fail(f"rank {rank} of {self.nranks}:\n{value}")
        return [value for _, value in answers]

    def kill(self):
        for p in self.processes:
            p.kill()
        _pools.pop(self.nranks, None)


_pools = {}


@pytest.fixture
def ranks():
    """ranks(n) gives n running ranks."""

    def of(nranks):
        if nranks not in _pools:
            _pools[nranks] = Ranks(nranks)
        return _pools[nranks]

    return of


@pytest.fixture
def alone():
    """A communicator of one rank in this process."""
    import gccl

    (comm,) = gccl.Communicator.init_all(1, device="host")
    yield comm
    comm.abort()


def pytest_sessionfinish(session, exitstatus):
    for pool in list(_pools.values()):
        for pipe in pool.pipes:
            pipe.close()
        for p in pool.processes:
            p.join(10)
            if p.is_alive():
                p.kill()
