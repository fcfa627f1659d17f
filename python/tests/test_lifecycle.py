"""Making and ending communicators; children; nonblocking; garbage collection, exit, fork and spawn."""

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import gccl
from programs import good, run

HOST = dict(device="host")


def test_with_destroys():
    uid = gccl.get_unique_id()
    with gccl.Communicator.init(1, 0, uid, **HOST) as c:
        assert (c.rank, c.nranks, c.is_valid, c.device, c.get_async_error()) == (0, 1, True, 0, 0)
        assert "rank 0 of 1" in repr(c)
    assert not c.is_valid and c.ptr == 0
    c.destroy()
    c.abort()
    with pytest.raises(gccl.NCCLInvalidArgument, match="destroyed"):
        c.allreduce(np.zeros(1))


def test_with_aborts_after_an_exception():
    one, two = gccl.Communicator.init_all(2, **HOST)
    with pytest.raises(KeyError):
        with one:
            raise KeyError
    assert not one.is_valid
    two.abort()


def test_bad_arguments():
    uid = gccl.get_unique_id()
    with pytest.raises(gccl.NCCLInvalidArgument, match="outside"):
        gccl.Communicator.init(2, 2, uid, **HOST)
    with pytest.raises(TypeError, match="from_bytes"):
        gccl.Communicator.init(1, 0, bytes(uid), **HOST)
    with pytest.raises(gccl.NcclInvalid, match="'host'"):
        gccl.Communicator.init(1, 0, uid, device="tpu")
    with pytest.raises(TypeError, match="no option 'blocked'"):
        gccl.NCCLConfig(blocked=True)
    with pytest.raises(gccl.NCCLInvalidArgument):
        gccl.Communicator.init(1, 0, uid, gccl.NCCLConfig(max_ctas=-3), **HOST)
    with pytest.raises(ValueError, match="128 bytes"):
        gccl.UniqueId.from_bytes(b"short")


def test_ids():
    uid = gccl.get_unique_id()
    assert len(bytes(uid)) == 128 and gccl.UniqueId.from_bytes(bytes(uid)) == uid == pickle.loads(pickle.dumps(uid))
    assert bytes(gccl.get_unique_id(empty=True)) == bytes(128)
    with pytest.raises(TypeError, match="belongs to its process"):
        (c,) = gccl.Communicator.init_all(1, **HOST)
        pickle.dumps(c)
    c.destroy()


def test_several_ids_and_threads():
    ids = [gccl.get_unique_id() for _ in range(2)]
    result = [0.0] * 3

    def rank(r):
        with gccl.Communicator.init(3, r, ids, gccl.NCCLConfig(comm_name="several"), **HOST) as c:
            x = np.full(10, r + 1.0)
            c.allreduce(x)
            result[r] = x[0]

    threads = [threading.Thread(target=rank, args=(r,)) for r in range(3)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert result == [6, 6, 6]


def children(comm):
    n, me = comm.nranks, comm.rank
    child = comm.split(color=me % 2, key=-me)
    x = np.array([me])
    child.allreduce(x)
    assert x[0] == sum(r for r in range(n) if r % 2 == me % 2)
    assert child.nranks == len([r for r in range(n) if r % 2 == me % 2])
    child.destroy()
    nothing = comm.split(None if me == 0 else 1)
    assert (nothing is None) == (me == 0)
    if nothing:
        assert (nothing.rank, nothing.nranks) == (me - 1, n - 1)
        small = nothing.shrink([0]) if nothing.rank else None
        if small:
            assert small.nranks == n - 2
            small.destroy()
        nothing.destroy()
    stats = comm.stats()
    assert stats["calls"] >= 0 and stats["shared_bytes"] + stats["private_bytes"] > 0
    assert comm.get_mem_stat(gccl.NcclCommMemStat.GPU_MEM_TOTAL) > 0
    comm.suspend()
    comm.resume()
    y = np.ones(3)
    comm.allreduce(y)
    assert (y == n).all()


def test_children(ranks):
    ranks(3).run(children)


def test_grow():
    old = gccl.Communicator.init_all(2, **HOST)
    uid = old[0].get_unique_id()
    with gccl.group():
        new = [old[0].grow(3, uid), old[1].grow(3), gccl.Communicator.join(3, 2, uid, **HOST)]
    x = [np.ones(4) for _ in new]
    with gccl.group():
        for c, a in zip(new, x):
            c.allreduce(a)
    assert [(c.rank, c.nranks) for c in new] == [(0, 3), (1, 3), (2, 3)] and (x[2] == 3).all()
    for c in new + old:
        c.destroy()


def test_nonblocking():
    uid = gccl.get_unique_id()
    config = gccl.NCCLConfig(blocking=False)
    comms = [gccl.Communicator.init(2, r, uid, config, **HOST) for r in range(2)]  # neither waits for the other
    for c in comms:
        c.wait(60)
    out = [np.zeros(1000) for _ in comms]
    for c, o in zip(comms, out):
        c.allreduce(np.full(1000, c.rank + 1.0), o)
    for c in comms:
        c.wait(60)
    assert all((o == 3).all() for o in out)
    children = [c.split(0, c.rank) for c in comms]
    for c, k in zip(comms, children):
        c.wait(60)
        assert (k.rank, k.nranks) == (c.rank, 2)
    one = np.zeros(8)
    comms[0].recv(one, 1)
    with pytest.raises(TimeoutError, match="in progress"):
        comms[0].wait(0.05)
    comms[1].send(np.ones(8), 0)
    comms[0].wait(60)
    comms[1].wait(60)
    assert (one == 1).all()
    for c in children + comms:
        c.destroy()


def test_streams():
    one, two = gccl.Communicator.init_all(2, **HOST)
    with gccl.Stream() as s, gccl.Stream() as t:
        out = [np.zeros(5000), np.zeros(5000)]
        for _ in range(3):
            one.allreduce(np.full(5000, 1.0), out[0], stream=s)  # the stream keeps it
            gc.collect()
        assert not s.query()
        mine = np.full(5000, 2.0)
        for _ in range(3):
            two.allreduce(mine, out[1], stream=t.handle)  # a mere handle keeps nothing
        s.synchronize()
        t.synchronize()
        assert s.query() and (out[0] == 3).all() and (out[1] == 3).all()
    s.close()
    with pytest.raises(ValueError, match="closed"):
        s.query()
    for c in (one, two):
        c.destroy()


def test_abort_ends_another_threads_wait():
    one, two = gccl.Communicator.init_all(2, **HOST)
    failures = []

    def wait():
        try:
            one.recv(np.zeros(100000), 1)
        except gccl.NCCLError as e:
            failures.append(e)

    t = threading.Thread(target=wait)
    t.start()
    while not one.stats()["calls"]:
        pass
    one.abort()
    t.join(60)
    assert failures
    two.abort()


def test_the_interpreter_lock_is_free():
    """Two threads that are two ranks: neither could go on if a waiting call kept the lock."""
    comms = gccl.Communicator.init_all(2, **HOST)
    x = [np.ones(100000), np.ones(100000)]
    threads = [threading.Thread(target=c.allreduce, args=(a,)) for c, a in zip(comms, x)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert (x[0] == 2).all()
    for c in comms:
        c.destroy()


def test_garbage_collection_releases():
    (c,) = gccl.Communicator.init_all(1, **HOST)
    ref, handle = weakref.ref(c), c.ptr
    with pytest.warns(ResourceWarning, match="never destroyed"):
        del c
        gc.collect()
    assert ref() is None
    (again,) = gccl.Communicator.init_all(1, **HOST)
    assert again.ptr != handle or again.get_async_error() == 0
    again.destroy()


EXITS = {
    "nothing destroyed": "c = gccl.Communicator.init_all(3, device='host')",
    "sys.exit": "c = gccl.Communicator.init_all(1, device='host'); sys.exit(0)",
    "work on a stream that never ends": """
        one, two = gccl.Communicator.init_all(2, device="host")
        s = gccl.Stream()
        one.recv(bytearray(100000), 1, stream=s)
    """,
    "a daemon thread that waits": """
        one, two = gccl.Communicator.init_all(2, device="host")
        threading.Thread(target=one.recv, args=(bytearray(100000), 1), daemon=True).start()
        while not one.stats()["calls"]: pass
    """,
    "in a cycle, with memory and a window": """
        class Node: pass
        n = Node(); n.me = n
        n.c = gccl.Communicator.init_all(1, device="host")
        n.memory = gccl.mem_alloc(4096, device="host")
        n.window = n.c[0].register_window(n.memory)
        n.stream = gccl.Stream()
    """,
    "an open group": """
        c, = gccl.Communicator.init_all(1, device="host")
        gccl.group_start()
        c.allreduce(bytearray(4))
    """,
    "an init that waits in a daemon thread": """
        uid = gccl.get_unique_id()
        threading.Thread(target=gccl.Communicator.init, args=(2, 0, uid), kwargs=dict(device="host"), daemon=True).start()
        time.sleep(0.1)
    """,
}


@pytest.mark.parametrize("what", EXITS)
def test_exit(what):
    p = run(EXITS[what] + "\n")
    assert p.returncode == 0 and "Exception ignored" not in p.stderr, (p.returncode, p.stderr)
    assert "Traceback" not in p.stderr or "daemon thread" in what, p.stderr  # the thread's call ends with an error


def test_fork_before_first_use():
    """A child that was forked before the library was opened is an ordinary process."""
    good("""
        pid = os.fork()
        c, = gccl.Communicator.init_all(1, device="host")
        c.allreduce(bytearray(4))
        c.destroy()
        if pid == 0:
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    """)


def test_fork_after_first_use():
    """A child gets errors that say so; its garbage collection and its exit leave the parent's communicator alone."""
    out = good("""
        import gc
        comms = gccl.Communicator.init_all(2, device="host")
        stream, memory = gccl.Stream(), gccl.mem_alloc(4096, device="host")
        pid = os.fork()
        if pid == 0:
            make = lambda: gccl.Communicator.init_all(1, device="host")
            for call in (gccl.get_unique_id, lambda: comms[0].allreduce(bytearray(4)), make):
                try:
                    call()
                    print("no error", flush=True)
                except gccl.NCCLError as e:
                    print("fork" in str(e), flush=True)
            del comms, stream, memory
            gc.collect()
            sys.exit(5)  # runs atexit
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
        x = [bytearray(b"\\1"), bytearray(b"\\2")]
        with gccl.group():
            for c, a in zip(comms, x):
                c.allreduce(a)
        print(x[0][0])
    """)
    assert out.split() == ["True", "True", "True", "3"]


def value(comm, offset):
    x = np.array([comm.rank + offset])
    comm.allreduce(x)
    return int(x[0])


def fails(comm):
    if comm.rank == 1:
        raise ValueError("on purpose")
    comm.allreduce(np.zeros(100000))


def dies(comm):
    import os

    if comm.rank == 1:
        os._exit(9)
    comm.allreduce(np.zeros(100000))


def test_spawn():
    assert gccl.spawn(value, 3, (10,)) == [33, 33, 33]


def test_spawn_reports_the_rank_that_failed():
    with pytest.raises(gccl.RankFailed, match="on purpose") as e:
        gccl.spawn(fails, 2)
    assert e.value.rank == 1
    with pytest.raises(gccl.RankFailed) as e:
        gccl.spawn(dies, 2)
    assert "ended with code 9" in str(e.value) or "rank 1" in str(e.value)
