"""All-reduce: four ranks add their arrays. spawn() starts the ranks; with a launcher of your own, see init() below."""

import numpy as np

import gccl


def program(comm):
    x = np.full(1000, comm.rank + 1.0, np.float32)
    comm.allreduce(x)  # in place, sum
    assert (x == 10).all()

    y = np.empty_like(x)
    comm.allreduce(x, y, gccl.MAX)  # into another array, another operator
    assert (y == 10).all()

    everyone = np.empty(comm.nranks, np.int64)
    comm.allgather(np.array([comm.rank]), everyone)
    return everyone.tolist()


def init(rank, nranks, share):
    """Without spawn(): one rank makes an id, share() hands its 128 bytes to all (MPI, a file, a socket), all ranks join."""
    unique_id = gccl.UniqueId.from_bytes(share(bytes(gccl.get_unique_id()) if rank == 0 else None))
    return gccl.Communicator.init(nranks, rank, unique_id, device="host")


if __name__ == "__main__":
    print(gccl.spawn(program, 4))
    with init(0, 1, lambda b: b) as comm:
        print(comm)
