"""Messages: a ring in a group, and work on a stream while the program does something else."""

import numpy as np

import gccl


def program(comm):
    right, left = (comm.rank + 1) % comm.nranks, (comm.rank - 1) % comm.nranks
    mine, got = np.full(100000, comm.rank), np.empty(100000, np.int64)

    # Every rank sends first: that only works side by side, in a group.
    with gccl.group():
        comm.send(mine, right)
        comm.recv(got, left)
    assert (got == left).all()  # valid after the block

    # On a stream the calls return at once; synchronize() waits. The stream keeps the arrays alive.
    with gccl.Stream() as stream:
        for _ in range(3):
            comm.allreduce(mine, stream=stream)
        squares = sum(i * i for i in range(100000))  # meanwhile
        stream.synchronize()
    assert squares and (mine == sum(range(comm.nranks)) * comm.nranks**2).all()
    return "ok"


if __name__ == "__main__":
    print(gccl.spawn(program, 3))
