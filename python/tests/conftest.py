"""Ranks for the tests: processes that live as long as the session and run what a test sends them."""

import multiprocessing
import os
import sys
import traceback

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEADLINE = 120  # seconds a test's ranks may take, on a slow and busy machine


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
    """Processes that are ranks: serve(nranks, rank, pipe, *args) in each, which answers what it is sent."""

    def __init__(self, nranks, serve, *args):
        context = multiprocessing.get_context("spawn")
        self.nranks, self.pipes, self.processes = nranks, [], []
        for rank in range(nranks):
            here, there = context.Pipe()
            p = context.Process(target=serve, args=(nranks, rank, there, *args), daemon=True)
            p.start()
            there.close()
            self.pipes.append(here)
            self.processes.append(p)

    def receive(self, rank):
        """What a rank says next."""
        if not self.pipes[rank].poll(DEADLINE):
            self.kill()
            pytest.fail(f"rank {rank} of {self.nranks} has not answered within {DEADLINE} s")
        try:
            return self.pipes[rank].recv()
        except EOFError:
            self.processes[rank].join(5)
            self.kill()
            pytest.fail(f"rank {rank} of {self.nranks} has ended with code {self.processes[rank].exitcode}")

    def run(self, function, *args):
        """function(comm, *args) on every rank; returns the results by rank, or fails with the first rank's traceback."""
        for pipe in self.pipes:
            pipe.send((function, args))
        answers = [self.receive(rank) for rank in range(self.nranks)]
        for rank, (good, value) in enumerate(answers):
            if not good:
                self.kill()  # what the communicator's state is now, nobody knows
                pytest.fail(f"rank {rank} of {self.nranks}:\n{value}")
        return [value for _, value in answers]

    def kill(self):
        for p in self.processes:
            p.kill()
        for key in [k for k, pool in _pools.items() if pool is self]:
            del _pools[key]

    def close(self):
        for pipe in self.pipes:
            pipe.close()
        for p in self.processes:
            p.join(20)
            if p.is_alive():
                p.kill()


_pools = {}


@pytest.fixture
def ranks():
    """ranks(n) gives n running ranks of one communicator."""

    def of(nranks):
        if nranks not in _pools:
            pool = _pools[nranks] = Ranks(nranks, _serve)
            unique_id = pool.receive(0)
            for pipe in pool.pipes[1:]:
                pipe.send(unique_id)
        return _pools[nranks]

    return of


@pytest.fixture
def torch_ranks(tmp_path_factory):
    """Three running ranks of a process group of torch.distributed."""
    import torch_ranks as module

    if "torch" not in _pools:
        meet = tmp_path_factory.mktemp("torch") / "rendezvous"
        _pools["torch"] = Ranks(3, module.serve, str(meet))
    return _pools["torch"]


@pytest.fixture
def alone():
    """A communicator of one rank in this process."""
    import gccl

    (comm,) = gccl.Communicator.init_all(1, device="host")
    yield comm
    comm.abort()


def pytest_sessionfinish(session, exitstatus):
    for pool in list(_pools.values()):
        pool.close()
