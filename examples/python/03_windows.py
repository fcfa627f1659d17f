"""Windows: arrays that peers write into directly, and signals that say when."""

import numpy as np

import gccl


def program(comm):
    n, me = comm.nranks, comm.rank
    right, left = (me + 1) % n, (me - 1) % n

    # A window lies in memory of the library's allocator; all ranks register it together.
    x = gccl.empty((n, 1024), "float64", device="host")
    with comm.register_window(x) as window:
        x[:] = me
        comm.allreduce(x)  # on a window: without a copy through scratch
        assert (x == n * (n - 1) / 2).all()

        comm.allreduce(np.zeros(1))  # a barrier: from here on nobody looks at the old contents any more
        x[me] = 100.0 + me
        comm.put_signal(x[me], right, window, peer_window_offset=x[me].nbytes * me)
        comm.wait_signal(gccl.WaitSignalDesc(left))  # the neighbour's row is here now
        assert (x[left] == 100.0 + left).all()
        comm.allreduce(np.zeros(1))  # nobody writes any more: the window may go
    return "ok"


if __name__ == "__main__":
    print(gccl.spawn(program, 3))
