"""Failures: a rank goes away, the others are told which one, shrink the communicator and go on."""

import numpy as np

import gccl


def program(comm):
    x = np.ones(100000)
    comm.allreduce(x)
    if comm.rank == 2:
        return "left"  # the others still expect it

    x[:] = 1
    try:
        while True:
            comm.allreduce(x)
    except gccl.NCCLError as e:
        assert "rank 2" in str(e), e
        if comm.rank == 0:
            print("rank 0:", e)
    with comm.shrink([2], flag=gccl.CommShrinkFlag.ABORT) as rest:
        x[:] = 1
        rest.allreduce(x)
        assert (x == comm.nranks - 1).all()
    comm.abort()  # a failed communicator is not destroyed
    return f"went on as rank {rest.rank} of {rest.nranks}"


if __name__ == "__main__":
    print(gccl.spawn(program, 4))
