"""The process group: torch.distributed's calls in terms of a communicator.

Collectives of CPU tensors share one channel, those of CUDA tensors another; each is made when it is first used, by all ranks.
Every ordered pair of ranks that exchanges messages has a channel of its own, so that sends and receives wait for nothing but
their other end, as with gloo.
"""

from __future__ import annotations

import collections
import time
import weakref

import torch
from torch._C._distributed_c10d import ProcessGroup, ReduceOp

import gccl

from .. import _exit
from .._buffers import Buffer
from .._errors import NcclInvalid
from .._types import BY_NAME
from ._work import AllWork, Channel, CudaMessage, CudaWork, GcclWork, bind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Deque, Dict, List, Sequence, Union

    from torch import Tensor

    Tensors = List[Tensor]
    Payload = Union[Tensor, Buffer]

_OPS = {"SUM": gccl.SUM, "PRODUCT": gccl.PROD, "MAX": gccl.MAX, "MIN": gccl.MIN, "AVG": gccl.AVG}
_BOOL_OPS = {"SUM": gccl.MAX, "PRODUCT": gccl.MIN, "MAX": gccl.MAX, "MIN": gccl.MIN, "BOR": gccl.MAX, "BAND": gccl.MIN}
_KNOWN = {getattr(torch, name) for name in BY_NAME if hasattr(torch, name)}


def _name(op: Any) -> str:
    """The name of a reduction operator, which is a ReduceOp or the enumerator inside of one."""
    return getattr(op, "op", op).name


def _raw(t: Tensor) -> Payload:
    """A tensor that is only moved: any type will do, as bytes."""
    if t.dtype in _KNOWN:
        return t
    return Buffer(t.data_ptr(), t.numel() * t.element_size(), gccl.UINT8, t.get_device() if t.is_cuda else None, keep=t)


def _dense(t: Tensor) -> Tensor:
    """A tensor whose elements lie one after the other, with the same contents."""
    if t.layout is not torch.strided:
        raise NcclInvalid(f"backend gccl: a tensor of layout {t.layout}: only dense (strided) tensors can be communicated")
    return t if t.is_contiguous() else t.contiguous()


def _back(buffer: Tensor, t: Tensor) -> None:
    """Takes a result over where it was not made in place."""
    if buffer is not t:
        t.copy_(buffer.view_as(t) if buffer.shape != t.shape else buffer)


def _one(tensors: Sequence[Tensor], call: str) -> Tensor:
    if len(tensors) != 1:
        raise NcclInvalid(f"backend gccl: {call}: {len(tensors)} tensors on one rank: a rank has one device here, pass one tensor")
    return tensors[0]


def _same_size(tensors: Sequence[Tensor]) -> bool:
    return all(t.numel() == tensors[0].numel() for t in tensors)


class _Reduction:
    """An operator as it applies to tensors of a type: which op of the library, and what to reduce in place of the tensor."""

    def __init__(self, op: Any, dtype: torch.dtype, call: str) -> None:
        name = _name(op)
        self._bool = dtype is torch.bool
        known = _BOOL_OPS if self._bool else _OPS
        self._factor: Any = None
        state = op.__getstate__() if name == "PREMUL_SUM" else None  # torch 1.13 does not tell the factor
        if state is not None and not self._bool:
            self._factor = state[1]
        elif name not in known:
            raise NcclInvalid(f"backend gccl: {call}: ReduceOp.{name} of {dtype} is not supported; those are {', '.join(known)}")
        if dtype not in _KNOWN and not self._bool:
            raise NcclInvalid(f"backend gccl: {call}: a reduction of {dtype} is not supported")
        self._op = known.get(name)

    def payload(self, t: Tensor) -> Tensor:
        """What the library is given."""
        return t.view(torch.uint8) if self._bool else t

    def op(self, comm: gccl.Communicator, t: Tensor) -> Any:
        """The library's operator."""
        if self._factor is None:
            return self._op
        scalar = torch.as_tensor(self._factor, dtype=t.dtype).reshape(1).cpu()
        return comm.create_pre_mul_sum(scalar)


class ProcessGroupGccl(ProcessGroup):
    """The process group of backend ``gccl``. Programs use it through torch.distributed."""

    def __init__(self, store: Any, rank: int, size: int, timeout: Any) -> None:
        super().__init__(rank, size)
        self._store = store
        self._rank, self._size = rank, size
        self._timeout = timeout.total_seconds()
        self._channels: Dict[str, Channel] = {}
        self._kept: Deque[Any] = collections.deque(maxlen=64)
        self._coalescing: Any = None
        self._name = ""
        _alive.add(self)

    # ---- What torch asks a group -----------------------------------------------------------------------------------

    def getBackendName(self) -> str:
        return "gccl"

    def name(self) -> str:
        return "gccl"

    def _get_backend_name(self) -> str:
        return "gccl"

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_name(self) -> str:
        return self._name

    def _set_group_desc(self, desc: str) -> None:
        self._desc = desc

    @property
    def group_desc(self) -> str:
        return getattr(self, "_desc", "")

    def _set_sequence_number_for_group(self) -> None:
        """There for callers; the library numbers operations itself."""

    def set_timeout(self, timeout: Any) -> None:
        """Seconds that an operation may take before its communicator is aborted."""
        self._timeout = timeout.total_seconds()
        for c in self._channels.values():
            c.timeout = self._timeout

    def shutdown(self) -> None:
        """Ends the group's communicators; idle ones leave in order."""
        channels, self._channels = list(self._channels.values()), {}
        for c in channels:
            c.close()

    def abort(self) -> None:
        """Ends whatever runs, without the other ranks."""
        channels, self._channels = list(self._channels.values()), {}
        for c in channels:
            c.close(error=True)

    # ---- Channels --------------------------------------------------------------------------------------------------

    def _channel(self, key: str, size: int, rank: int, like: Tensor, alone: bool = False) -> Channel:
        """like: a tensor that says for which memory. alone: its jobs may wait on the host for the other ranks, whatever this rank does meanwhile."""
        channel = self._channels.get(key)
        if channel is None:
            device = like.device

            def make(comm: gccl.Communicator) -> None:
                if device.type == "cuda":
                    bind(device)
                if rank == 0:
                    unique_id = gccl.get_unique_id()
                    self._store.set(f"gccl/{key}", bytes(unique_id))
                else:
                    unique_id = gccl.UniqueId.from_bytes(self._await(f"gccl/{key}"))
                comm.initialize(size, rank, unique_id, gccl.NCCLConfig(comm_name=f"torch {self._name} {key}"),
                                device="host" if device.type == "cpu" else device.type)
                if alone:
                    comm.meet_on_host()

            name = f"rank {self._rank} of {self._size}, {key}"
            channel = self._channels[key] = Channel(name, make, self._timeout)
        return channel

    def _await(self, key: str) -> bytes:
        """What another rank puts into the store. Not store.get, which waits with the store's connection in its hands: the thread of another
        channel could not put there what a peer waits for."""
        end, nap = time.monotonic() + self._timeout, 0.0005
        while not self._has(key):
            if time.monotonic() > end:
                raise TimeoutError(f"rank {self._rank}: no rank has made {key} within {self._timeout} s")
            time.sleep(nap)
            nap = min(nap * 2, 0.01)
        return bytes(self._store.get(key))

    def _has(self, key: str) -> bool:
        if hasattr(self._store, "check"):
            return bool(self._store.check([key]))
        nothing = "none"  # before torch 2.0: a key that is not there is not set when something else than "" is expected of it
        try:
            return bytes(self._store.compare_set(key, nothing, nothing)) != nothing.encode()
        except RuntimeError:  # a store of files, which holds nothing while it waits
            return True

    def _run(self, call: str, outputs: Tensors, job: Callable[[gccl.Communicator], None], opts: Any = None, like: Any = None) -> Any:
        """Makes a collective of a job."""
        t = outputs[0] if like is None else like
        if t.is_cuda:
            return self._run_cuda(self._channel("cuda", self._size, self._rank, t), outputs or [t], job)
        work = GcclWork(self._channel("cpu", self._size, self._rank, t), call, job, outputs, getattr(opts, "timeout", None))
        return self._submit(work, getattr(opts, "asyncOp", True))

    def _submit(self, work: GcclWork, now: bool) -> Any:
        # A caller in C++ holds the C++ half of a work only; the Python half must live until it is waited for.
        self._kept.append(work)
        if self._coalescing is not None:
            self._coalescing.append(work)
        assert work._channel is not None
        work._channel.submit(work, now or self._coalescing is not None)
        return work

    def _run_cuda(self, channel: Channel, outputs: Tensors, job: Callable[[gccl.Communicator], None]) -> Any:
        """Runs a job on the current stream, which is what orders it."""
        work = GcclWork(channel, "a CUDA call", job, outputs)
        channel.submit(work, False)
        work.wait()
        done = CudaWork(outputs)
        self._kept.append(done)
        if self._coalescing is not None:
            self._coalescing.append(done)
        return done

    def _start_coalescing(self, device: Any = None) -> None:
        self._coalescing = []

    def _end_coalescing(self, device: Any = None) -> Any:
        works, self._coalescing = self._coalescing or [], None
        work = AllWork(works)
        self._kept.append(work)
        return work

    # ---- Collectives -----------------------------------------------------------------------------------------------

    def allreduce(self, tensors: Any, opts: Any = None) -> Any:
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        return self._allreduce("allreduce", [_one(tensors, "allreduce")], opts)

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Any:
        return self._allreduce("allreduce_coalesced", list(tensors), opts)

    def _allreduce(self, call: str, tensors: Tensors, opts: Any) -> Any:
        op = getattr(opts, "reduceOp", ReduceOp.SUM)
        how = {t.dtype: _Reduction(op, t.dtype, call) for t in tensors}
        buffers = [_dense(t) for t in tensors]

        def job(comm: gccl.Communicator) -> None:
            for t, b in zip(tensors, buffers):
                comm.allreduce(how[t.dtype].payload(b), op=how[t.dtype].op(comm, b))
                _back(b, t)

        return self._run(call, tensors, job, opts)

    def reduce(self, tensors: Tensors, opts: Any) -> Any:
        t = _one(tensors, "reduce")
        how, b, root = _Reduction(opts.reduceOp, t.dtype, "reduce"), _dense(t), opts.rootRank

        def job(comm: gccl.Communicator) -> None:
            comm.reduce(how.payload(b), how.payload(b) if comm.rank == root else None, how.op(comm, b), root)
            if comm.rank == root:
                _back(b, t)

        return self._run("reduce", [t], job, opts)

    def broadcast(self, tensors: Any, opts: Any = None) -> Any:
        t = tensors if isinstance(tensors, torch.Tensor) else _one(tensors, "broadcast")
        b, root = _dense(t), getattr(opts, "rootRank", 0)

        def job(comm: gccl.Communicator) -> None:
            comm.broadcast(_raw(b), root=root)
            if comm.rank != root:
                _back(b, t)

        return self._run("broadcast", [t], job, opts)

    def allgather(self, output_lists: List[Tensors], inputs: Tensors, opts: Any = None) -> Any:
        t, outputs = _dense(_one(inputs, "allgather")), output_lists[0]
        if len(outputs) != self._size:
            raise NcclInvalid(f"backend gccl: allgather: {len(outputs)} output tensors for {self._size} ranks")

        def job(comm: gccl.Communicator) -> None:
            if _same_size(outputs):
                flat = torch.empty((self._size, t.numel()), dtype=t.dtype, device=t.device)
                comm.allgather(_raw(t), _raw(flat))
                for part, out in zip(flat, outputs):
                    out.copy_(part.view_as(out))
                return
            for root, out in enumerate(outputs):  # every rank's own size
                b = _dense(out)
                comm.broadcast(_raw(t) if root == comm.rank else None, _raw(b), root)
                _back(b, out)

        return self._run("allgather", outputs, job, opts, t)

    def allgather_coalesced(self, output_lists: List[Tensors], inputs: Tensors, opts: Any = None) -> Any:
        # Here a list holds one rank's outputs of all inputs.
        works = [self.allgather([[outputs[k] for outputs in output_lists]], [t], opts) for k, t in enumerate(inputs)]
        work = AllWork(works)
        self._kept.append(work)
        return work

    def _allgather_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Any:
        return self.allgather_into_tensor_coalesced([output], [input], opts)

    def allgather_into_tensor_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Any:
        buffers, sources = [_dense(o) for o in outputs], [_dense(i) for i in inputs]

        def job(comm: gccl.Communicator) -> None:
            for b, s, o in zip(buffers, sources, outputs):
                comm.allgather(_raw(s), _raw(b))
                _back(b, o)

        return self._run("allgather_into_tensor", list(outputs), job, opts)

    def gather(self, output_lists: List[Tensors], inputs: Tensors, opts: Any) -> Any:
        t, root = _dense(_one(inputs, "gather")), opts.rootRank
        outputs = output_lists[0] if self._rank == root else []

        def job(comm: gccl.Communicator) -> None:
            flat = torch.empty((self._size, t.numel()), dtype=t.dtype, device=t.device) if comm.rank == root else None
            comm.gather(_raw(t), None if flat is None else _raw(flat), root)
            if flat is not None:
                for part, out in zip(flat, outputs):
                    out.copy_(part.view_as(out))

        return self._run("gather", outputs, job, opts, t)

    def scatter(self, outputs: Tensors, input_lists: List[Tensors], opts: Any) -> Any:
        t, root = _one(outputs, "scatter"), opts.rootRank
        b = _dense(t)
        parts = input_lists[0] if self._rank == root else []

        def job(comm: gccl.Communicator) -> None:
            flat = torch.stack([p.reshape(-1) for p in parts]) if comm.rank == root else None
            comm.scatter(None if flat is None else _raw(flat), _raw(b), root)
            _back(b, t)

        return self._run("scatter", [t], job, opts)

    def reduce_scatter(self, outputs: Tensors, input_lists: List[Tensors], opts: Any = None) -> Any:
        t, parts = _one(outputs, "reduce_scatter"), input_lists[0]
        how, b = _Reduction(getattr(opts, "reduceOp", ReduceOp.SUM), t.dtype, "reduce_scatter"), _dense(t)

        def job(comm: gccl.Communicator) -> None:
            op = how.op(comm, b)
            if _same_size(parts):
                flat = torch.cat([p.reshape(-1) for p in parts])
                comm.reduce_scatter(how.payload(flat), how.payload(b), op)
            else:
                for root, part in enumerate(parts):  # every rank's own size
                    comm.reduce(how.payload(_dense(part)), how.payload(b) if root == comm.rank else None, op, root)
            _back(b, t)

        return self._run("reduce_scatter", [t], job, opts)

    def _reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Any:
        return self.reduce_scatter_tensor_coalesced([output], [input], opts)

    def reduce_scatter_tensor_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Any:
        op = getattr(opts, "reduceOp", ReduceOp.SUM)
        how = [_Reduction(op, o.dtype, "reduce_scatter_tensor") for o in outputs]
        buffers, sources = [_dense(o) for o in outputs], [_dense(i) for i in inputs]

        def job(comm: gccl.Communicator) -> None:
            for h, b, s, o in zip(how, buffers, sources, outputs):
                comm.reduce_scatter(h.payload(s), h.payload(b), h.op(comm, b))
                _back(b, o)

        return self._run("reduce_scatter_tensor", list(outputs), job, opts)

    def alltoall_base(self, output: Tensor, input: Tensor, output_splits: List[int], input_splits: List[int], opts: Any = None) -> Any:
        b, s = _dense(output), _dense(input)

        def job(comm: gccl.Communicator) -> None:
            if not output_splits and not input_splits:
                comm.alltoall(_raw(s), _raw(b))
            else:
                _exchange(comm, _rows(s, input_splits, self._size), _rows(b, output_splits, self._size))
            _back(b, output)

        return self._run("alltoall", [output], job, opts)

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Any:
        buffers, sources = [_dense(o) for o in outputs], [_dense(i) for i in inputs]

        def job(comm: gccl.Communicator) -> None:
            _exchange(comm, sources, buffers)
            for b, o in zip(buffers, outputs):
                _back(b, o)

        return self._run("alltoall", list(outputs), job, opts)

    def barrier(self, opts: Any = None) -> Any:
        token = torch.zeros(1, dtype=torch.int32)
        return self._run("barrier", [token], lambda comm: comm.allreduce(token), opts)

    # ---- Messages --------------------------------------------------------------------------------------------------

    def send(self, tensors: Tensors, peer: int, tag: int = 0) -> Any:
        t = _dense(_one(tensors, "send"))
        return self._message("send", t, self._rank, peer, tag, lambda comm: comm.send(_raw(t), 1))

    def recv(self, tensors: Tensors, peer: int, tag: int = 0) -> Any:
        t = _one(tensors, "recv")
        b = _dense(t)

        def job(comm: gccl.Communicator) -> None:
            comm.recv(_raw(b), 0)
            _back(b, t)

        return self._message("recv", t, peer, self._rank, tag, job, b)

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Any:
        raise NcclInvalid("backend gccl: recv without a source rank is not supported: name the sender")

    def _message(self, call: str, t: Tensor, source: int, target: int, tag: int, job: Callable[[gccl.Communicator], None], *used: Tensor) -> Any:
        """A message from source to target has a communicator of two ranks: 0 sends, 1 receives."""
        if tag != 0:
            raise NcclInvalid(f"backend gccl: {call} with tag {tag}: there are no tags; messages of a pair match in order")
        if source == target:
            raise NcclInvalid(f"backend gccl: {call}: rank {source} and itself: copy the tensor")
        kind = "cuda" if t.is_cuda else "host"
        channel = self._channel(f"{kind} messages {source}-{target}", 2, 0 if source == self._rank else 1, t, alone=True)
        return self._submit(CudaMessage(channel, call, job, t, *used) if t.is_cuda else GcclWork(channel, call, job, [t]), True)


def _rows(t: Tensor, splits: List[int], n: int) -> Tensors:
    """The parts of a tensor along its first axis; no splits are equal ones."""
    if not splits:
        if t.shape[0] % n:
            raise NcclInvalid(f"backend gccl: alltoall: {t.shape[0]} rows do not divide among {n} ranks")
        splits = [t.shape[0] // n] * n
    return list(t.split(list(splits)))


def _exchange(comm: gccl.Communicator, sources: Tensors, targets: Tensors) -> None:
    """sources[r] to rank r, targets[r] from rank r, all at once. Empty parts are left out on both sides."""
    with gccl.group():
        for peer, (s, t) in enumerate(zip(sources, targets)):
            if s.numel():
                comm.send(_raw(s), peer)
            if t.numel():
                comm.recv(_raw(t), peer)


_alive: weakref.WeakSet[ProcessGroupGccl] = weakref.WeakSet()


def _end() -> None:
    """Channels' threads end before the interpreter does."""
    for group in list(_alive):
        group.shutdown()


_exit.first(_end)
