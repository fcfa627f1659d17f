"""The backend ``gccl`` of torch.distributed, and GCCL under PyTorch's own backend ``nccl``.

::

    import gccl.torch
    torch.distributed.init_process_group("gccl", ...)

That is all: DistributedDataParallel and the rest then run over GCCL, on CPU tensors as on CUDA tensors. For the backend
``nccl`` see :func:`preload`. Works with torch 1.13 and later.
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist

from .. import _library
from .._memory import _dtype, _Memory
from .._types import ITEMSIZE
from ._group import ProcessGroupGccl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Sequence, Union

__all__ = ["ProcessGroupGccl", "empty", "preload", "preload_line"]


def _create(store: Any, rank: int, size: int, timeout: Any) -> ProcessGroupGccl:
    return ProcessGroupGccl(store, rank, size, timeout)


def _register() -> None:
    if "GCCL" in dist.Backend._plugins:
        return
    try:
        dist.Backend.register_backend("gccl", _create, devices=["cpu", "cuda"])
    except TypeError:  # before torch 2.1
        dist.Backend.register_backend("gccl", _create)


_register()


def preload_line() -> str:
    """What to put before a command so that its PyTorch uses GCCL as its NCCL: ``LD_PRELOAD=/path/libgccl.so``."""
    return "LD_PRELOAD=" + os.path.realpath(_library.path())


def preload() -> None:
    """Puts GCCL under PyTorch's backend ``nccl``: runs the program again with :func:`preload_line` in its environment.

    Symbols are bound when torch is loaded, so it must be the loader that puts this library first. Call it at the start of the
    main program. Returns at once where the library is preloaded already, so that the second run goes on.

    Raises:
        RuntimeError: where the program cannot be run again as it was (an interactive session).
    """
    path = os.path.realpath(_library.path())
    preloaded = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    if path in map(os.path.realpath, preloaded):
        return
    command = getattr(sys, "orig_argv", None) or [sys.executable, *sys.argv]
    if hasattr(sys, "ps1") or not sys.argv or not sys.argv[0]:
        raise RuntimeError(f"preload: an interactive session cannot be run again; start it with {preload_line()}")
    os.environ["LD_PRELOAD"] = " ".join([path, *preloaded])
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, command)


def empty(*shape: Union[int, Sequence[int]], dtype: Optional[torch.dtype] = None, device: Union[str, torch.device] = "cpu") -> torch.Tensor:
    """A new tensor in memory of ncclMemAlloc, not initialized: fit for :meth:`gccl.Communicator.register_window`.

    Args:
        shape: numbers, or one sequence.
        dtype: any type that NCCL has; None is torch's default type.
        device: "cpu", or a CUDA device, which has to be the current one.

    The memory is freed with the last tensor that refers to it.
    """
    dims: Sequence[Any] = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    kind = torch.device(device).type
    t = dtype or torch.get_default_dtype()
    code, _ = _dtype(t)
    count = 1
    for n in dims:
        count *= n
    memory = _Memory(count * ITEMSIZE[code], "host" if kind == "cpu" else "cuda")
    if count == 0:
        return torch.empty(dims, dtype=t, device=device)
    if kind == "cpu":
        import ctypes

        place = (ctypes.c_uint8 * memory.size).from_address(memory.address)
        place._memory = memory  # type: ignore[attr-defined]  # the tensor keeps the array, and with it the memory
        return torch.frombuffer(place, dtype=t).view(dims)
    return torch.as_tensor(_CudaBytes(memory), device=device).view(t).view(dims)


class _CudaBytes:
    """Bytes of GPU memory for torch.as_tensor, which keeps the object."""

    def __init__(self, memory: _Memory) -> None:
        self._memory = memory
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": (memory.size,),
            "typestr": "|u1",
            "strides": None,
            "data": (memory.address, False),
        }
