"""Groups: ranks of one thread, several communicators, dropped groups, estimates, lifetimes."""

import gc
import threading

import numpy as np
import pytest

import gccl


@pytest.fixture
def three():
    comms = gccl.Communicator.init_all(3, device="host")
    yield comms
    for c in comms:
        c.abort()


def test_ranks_of_one_thread(three):
    x = [np.full(100, c.rank + 1) for c in three]
    with gccl.group():
        for c in three:
            c.allreduce(x[c.rank])
    assert all((a == 6).all() for a in x)
    parts = [np.zeros(3, np.int64) for _ in three]
    with gccl.group(), gccl.group():  # groups nest
        for c in three:
            c.alltoall(np.arange(3) + 10 * c.rank, parts[c.rank])
    assert [p.tolist() for p in parts] == [[0, 10, 20], [1, 11, 21], [2, 12, 22]]


def test_creation_in_a_group():
    uid = gccl.get_unique_id()
    with gccl.group():
        comms = [gccl.Communicator.init(2, r, uid, device="host") for r in range(2)]
        assert not comms[0].is_valid
    assert [c.is_valid for c in comms] == [True, True]
    with gccl.group():
        children = [c.split(color=0, key=-c.rank) for c in comms]
    assert [(c.rank, c.nranks) for c in children] == [(1, 2), (0, 2)]
    with gccl.group():
        for c in children + comms:
            c.destroy()
    assert not any(c.is_valid for c in children + comms)


def test_buffers_live_until_the_end(three):
    out = [np.zeros(1000) for _ in three]
    with gccl.group():
        for c in three:
            c.allreduce(np.full(1000, 2.0), out[c.rank])  # nobody else holds the send buffer
            gc.collect()
            np.full(1000, 9.0)
    assert all((o == 6).all() for o in out)


def test_a_body_that_raises_runs_nothing(three):
    x = [np.ones(4) for _ in three]
    with pytest.raises(ZeroDivisionError):
        with gccl.group():
            three[0].allreduce(x[0])
            1 / 0
    assert (x[0] == 1).all()
    with gccl.group():  # the thread's depth is right again
        for c in three:
            c.allreduce(x[c.rank])
    assert (x[2] == 3).all()


def test_a_failed_call_fails_the_group(three):
    x = np.ones(4)
    with pytest.raises(gccl.NCCLInvalidArgument, match="root 9"):
        with gccl.group():
            three[0].allreduce(x)
            three[0].broadcast(x, root=9)
    gccl.group_start()
    three[0].allreduce(x)
    with pytest.raises(gccl.NCCLInvalidArgument):
        three[0].broadcast(x, root=9)
    with pytest.raises(gccl.NCCLInvalidArgument, match="root 9"):
        gccl.group_end()
    assert (x == 1).all()


def test_group_end_without_start():
    with pytest.raises(gccl.NCCLInvalidUsage, match="ncclGroupStart"):
        gccl.group_end()


def test_simulate(three):
    x = [np.ones(1 << 16, np.float32) for _ in three]
    gccl.group_start()
    for c in three:
        c.allreduce(x[c.rank])
    info = gccl.group_end(simulate=True)
    assert info.estimated_time > 0
    assert (x[0] == 1).all()


def test_groups_belong_to_their_thread(three):
    x = [np.ones(10) for _ in three]
    gccl.group_start()
    three[0].allreduce(x[0])
    done = []

    def others():
        with gccl.group():
            for c in three[1:]:
                c.allreduce(x[c.rank])
        done.append(True)

    t = threading.Thread(target=others)
    t.start()
    gccl.group_end()
    t.join(30)
    assert done and all((a == 3).all() for a in x)


def test_message_to_oneself(alone):
    x, y = np.arange(5), np.zeros(5, np.int64)
    with gccl.group():
        alone.send(x, 0)
        alone.recv(y, 0)
    assert (x == y).all()
