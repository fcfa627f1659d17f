"""The package on CUDA buffers against numpy: what a rank does. A store makes the buffers: of the driver, or torch's tensors.

Run by pytest over the stand-in for the driver (test_cuda.py), and without pytest on a GPU: python3 cuda_ranks.py NRANKS driver|torch
"""

import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import gccl

COUNTS = (0, 1, 17, 1000)
OPS = {"SUM": lambda x: x.sum(0), "PROD": lambda x: x.prod(0), "MAX": lambda x: x.max(0), "MIN": lambda x: x.min(0)}


class TorchStore:
    """Tensors of torch; work goes to its current stream, which nobody has to name."""

    def __init__(self):
        import torch

        torch.cuda.set_device(0)
        self.torch, self.stream = torch, {}
        names = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2")
        self.types = [n for n in names if hasattr(torch, n)]

    def put(self, values, name):
        t = self.torch
        return t.from_numpy(np.array(values, np.float64)).to(getattr(t, name)).cuda()

    def get(self, buffer):
        return buffer.cpu().to(self.torch.float64).numpy()

    def put_into(self, buffer, values):
        self.torch.as_tensor(buffer, device="cuda").copy_(self.torch.from_numpy(np.array(values, np.float32)))

    def get_from(self, buffer):
        return self.get(self.torch.as_tensor(buffer, device="cuda"))


def numbers(rank, count, seed=0):
    """Small whole numbers, whose sums and products every type holds exactly."""
    return ((np.arange(count) * 7 + rank * 3 + seed) % 3).astype(np.float64)


def everyone(n, count):
    return np.stack([numbers(r, count) for r in range(n)])


def equal(got, want, what):
    got, want = np.asarray(got, np.float64).ravel(), np.asarray(want, np.float64).ravel()
    bad = np.flatnonzero(got != want)
    assert got.size == want.size and bad.size == 0, f"{what}: element {bad[:1]} of {got.size}: got {got[bad[:3]]}, want {want[bad[:3]]}"


def reductions(comm, store):
    n, me = comm.nranks, comm.rank
    for name in store.types:
        for count in COUNTS:
            for op, oracle in OPS.items():
                want, code = oracle(everyone(n, count)), getattr(gccl, op)
                x, out = store.put(numbers(me, count), name), store.put(np.full(count, 77), name)
                comm.allreduce(x, out, code, **store.stream)
                equal(store.get(out), want, f"allreduce {op} {name}")
                equal(store.get(x), numbers(me, count), f"allreduce {op} {name}: sendbuf")
                comm.allreduce(x, op=code, **store.stream)
                equal(store.get(x), want, f"allreduce {op} {name} in place")
            root = count % n
            out = store.put(np.full(count, 77), name) if me == root else None
            comm.reduce(store.put(numbers(me, count), name), out, gccl.SUM, root, **store.stream)
            if me == root:
                equal(store.get(out), everyone(n, count).sum(0), f"reduce {name}")
            whole, part = np.concatenate([numbers(me, count, p) for p in range(n)]), store.put(np.full(count, 77), name)
            comm.reduce_scatter(store.put(whole, name), part, **store.stream)
            equal(store.get(part), sum(numbers(r, count, me) for r in range(n)), f"reduce_scatter {name}")
    x = store.put(np.full(5, 2.0 * me), "float32")
    comm.allreduce(x, op=gccl.AVG, **store.stream)
    equal(store.get(x), np.full(5, n - 1.0), "average")
    x = store.put(np.full(5, 1.0), "float32")
    op = comm.create_pre_mul_sum(me + 2, gccl.FLOAT32)
    comm.allreduce(x, op=op, **store.stream)
    equal(store.get(x), np.full(5, sum(r + 2.0 for r in range(n))), "pre-mul sum")
    op.close()


def moves(comm, store):
    n, me = comm.nranks, comm.rank
    for name in store.types:
        for count in COUNTS:
            each = [numbers(r, count) for r in range(n)]
            out = store.put(np.full(n * count, 77), name)
            comm.allgather(store.put(each[me], name), out, **store.stream)
            equal(store.get(out), np.concatenate(each), f"allgather {name}")
            root = count % n
            x = store.put(each[me], name)
            comm.broadcast(x, root=root, **store.stream)
            equal(store.get(x), each[root], f"broadcast {name}")
            out = store.put(np.full(n * count, 77), name)
            comm.alltoall(store.put(np.concatenate([numbers(me, count, p) for p in range(n)]), name), out, **store.stream)
            equal(store.get(out), np.concatenate([numbers(r, count, me) for r in range(n)]), f"alltoall {name}")
            out = store.put(np.full(n * count, 77), name) if me == root else None
            comm.gather(store.put(each[me], name), out, root, **store.stream)
            if me == root:
                equal(store.get(out), np.concatenate(each), f"gather {name}")
            whole = store.put(np.concatenate(each), name) if me == root else None
            out = store.put(np.full(count, 77), name)
            comm.scatter(whole, out, root, **store.stream)
            equal(store.get(out), each[me], f"scatter {name}")


def messages(comm, store):
    n, me = comm.nranks, comm.rank
    for count in (1, 1000, 300000):
        x, y = store.put(numbers(me, count), "float32"), store.put(np.zeros(count), "float32")
        with gccl.group():
            comm.send(x, (me + 1) % n, **store.stream)
            comm.recv(y, (me - 1) % n, **store.stream)
        equal(store.get(y), numbers((me - 1) % n, count), "ring")
        ins, outs = [store.put(numbers(me, 10, p), "int32") for p in range(n)], [store.put(np.zeros(10), "int32") for _ in range(n)]
        with gccl.group():
            for p in range(n):
                comm.send(ins[p], p, **store.stream)
                comm.recv(outs[p], p, **store.stream)
        for p in range(n):
            equal(store.get(outs[p]), numbers(p, 10, me), "all to all by messages")
    if me < 2 and n > 1:
        z = store.put(np.full(3, 5.0 * me), "float64")
        (comm.send if me == 0 else comm.recv)(z, 1 - me, **store.stream)
        equal(store.get(z), np.zeros(3), "one message")


def windows(comm, store):
    n, me = comm.nranks, comm.rank
    x = gccl.empty(1024, device="cuda")
    store.put_into(x, np.full(1024, me + 1.0))
    window = comm.register_window(x)
    comm.allreduce(x, **store.stream)
    equal(store.get_from(x), np.full(1024, n * (n + 1) / 2), "allreduce in a window")
    store.put_into(x, np.arange(1024.0) + 1000 * me)
    comm.allreduce(store.put([0], "int32"), **store.stream)  # everybody has written
    if n > 1:
        right, left = (me + 1) % n, (me - 1) % n
        comm.put_signal(gccl.Buffer(x.__cuda_array_interface__["data"][0], 256, gccl.FLOAT32, 0, keep=x), right, window, 2048, **store.stream)
        comm.wait_signal(gccl.WaitSignalDesc(left), **store.stream)
        equal(store.get_from(x)[512:768], np.arange(256.0) + 1000 * left, "put behind a signal")
    window.close()


def kernels(comm, store):
    """Kernels that communicate: on the CPU over the stand-in, whose memory they reach; on a GPU examples/python/06_device_api.py does it."""
    import device_kernels

    n, me, lib = comm.nranks, comm.rank, device_kernels.library()
    assert comm.device_api_support and comm.query_properties().cuda_dev == 0
    x, y = gccl.empty(1000, device="cuda"), gccl.empty(1000, device="cuda")
    own = gccl.DevResource(64)
    asked = gccl.NCCLDevCommRequirements(lsa_barrier_count=2, resources=[own])
    with comm.register_window(x) as a, comm.register_window(y) as b, comm.create_dev_comm(asked) as dev:
        assert own.handle > 0 and dev.dev_comm.lsa_size == n
        for k, (kernel, pointer) in enumerate(((lib.by_value, dev.ptr), (lib.by_pointer, dev.device_ptr)) * 2):
            store.put_into(x, np.arange(1000.0) + me + k)
            kernel(2, a.handle, b.handle, 1000, pointer)
            equal(store.get_from(y), n * (np.arange(1000.0) + k) + n * (n - 1) / 2, "allreduce in a kernel")
            comm.allreduce(store.put([0], "int32"), **store.stream)
            store.driver.synchronize()


def children(comm, store):
    n, me = comm.nranks, comm.rank
    child = comm.split(me % 2, me)
    x = store.put([1.0], "float32")
    child.allreduce(x, **store.stream)
    equal(store.get(x), [len(range(me % 2, n, 2))], "split")
    child.destroy()


def refused(comm, store):
    for call, words in (
        (lambda: comm.allreduce(np.zeros(3, np.float32)), "memory"),
        (lambda: comm.allreduce(store.put(np.zeros(3), "float32"), np.zeros(3, np.float32), **store.stream), "devices"),
        (lambda: comm.allreduce(store.put(np.zeros(3), "float32"), store.put(np.zeros(4), "float32"), **store.stream), "equal"),
    ):
        try:
            call()
        except gccl.NcclInvalid as e:
            assert words in str(e), e
        else:
            raise AssertionError(f"no error about {words}")


def current_stream(comm, store):
    """torch's current stream orders a call behind what was enqueued there, whatever its name."""
    t = store.torch
    for side in (t.cuda.current_stream(), t.cuda.Stream()):
        with t.cuda.stream(side):
            x = t.zeros(1 << 20, device="cuda")
            for _ in range(50):
                x += comm.rank + 1
            comm.allreduce(x)
            x *= 2
        side.synchronize()
        n = comm.nranks
        assert bool((x == 2 * 50 * n * (n + 1) // 2).all()), x[:3]
    t.cuda.synchronize()


ALL = [reductions, moves, messages, windows, children, refused]


def main(n, kind):
    """A rank where GCCL_TEST_RANK says so, otherwise all of them as processes."""
    if "GCCL_TEST_RANK" not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            ps = [subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, GCCL_TEST_RANK=str(r), GCCL_TEST_MEET=folder)) for r in range(n)]
            end = time.time() + 150
            while any(p.poll() is None for p in ps) and time.time() < end and not any(p.poll() for p in ps):
                time.sleep(0.05)
            time.sleep(1 if any(p.poll() for p in ps) else 0)
            for p in ps:
                if p.poll() is None:
                    print(f"rank {ps.index(p)} has not ended", flush=True)
                    p.kill()
            return max(abs(p.wait()) for p in ps)
    from cuda_driver import DriverStore

    rank, file = int(os.environ["GCCL_TEST_RANK"]), os.path.join(os.environ["GCCL_TEST_MEET"], "id")
    store = TorchStore() if kind == "torch" else DriverStore()
    if rank == 0:
        unique_id = gccl.get_unique_id()
        with open(file + ".new", "wb") as f:
            f.write(bytes(unique_id))
        os.rename(file + ".new", file)
    while not os.path.exists(file):  # the parent ends this one if nobody makes it
        time.sleep(0.01)
    with open(file, "rb") as f:
        unique_id = gccl.UniqueId.from_bytes(f.read())
    with gccl.Communicator.init(n, rank, unique_id, device="cuda") as comm:
        for what in ALL + ([current_stream] if kind == "torch" else []) + ([kernels] if "GCCL_FAKE_KERNELS" in os.environ else []):
            what(comm, store)
            if rank == 0:
                print(f"{what.__name__}: ok, types {', '.join(store.types)}" if what is reductions else f"{what.__name__}: ok", flush=True)
    print(f"rank {rank}: ok, {gccl.library_info().path}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
