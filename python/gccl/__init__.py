"""GCCL for Python: NCCL's collectives on CPUs and GPUs, without a compiled extension.

::

    import gccl, numpy as np

    comm = gccl.Communicator.init(nranks, rank, unique_id)      # unique_id: gccl.get_unique_id() of one rank
    x = np.ones(1000, np.float32)
    comm.allreduce(x)                                           # in place; x is nranks everywhere
    comm.destroy()

``gccl.spawn(function, 4)`` runs a function as four ranks of this machine. ``import gccl.torch`` makes the backend ``gccl`` of
torch.distributed. Names follow nccl4py (``import gccl as nccl``). Importing this package opens nothing: the library is loaded
by the first call, and :func:`library_info` says which one that is.
"""

from ._buffers import Buffer, view
from ._communicator import Communicator, get_unique_id
from ._device import *  # noqa: F403
from ._device import __all__ as _device_names
from ._errors import *  # noqa: F403
from ._errors import __all__ as _errors
from ._group import GroupSimInfo, group, group_end, group_start
from ._library import LibraryInfo, get_error_string, library_info
from ._memory import empty, mem_alloc, mem_free, zeros
from ._resources import CustomRedOp, RegisteredBufferHandle, RegisteredWindowHandle
from ._spawn import RankFailed, spawn
from ._stream import Stream
from ._types import *  # noqa: F403
from ._types import NcclDataType, NcclRedOp
from ._types import __all__ as _types
from ._version import __version__

INT8 = CHAR = NcclDataType.INT8
UINT8 = NcclDataType.UINT8
INT32 = INT = NcclDataType.INT32
UINT32 = NcclDataType.UINT32
INT64 = NcclDataType.INT64
UINT64 = NcclDataType.UINT64
FLOAT16 = HALF = NcclDataType.FLOAT16
FLOAT32 = FLOAT = NcclDataType.FLOAT32
FLOAT64 = DOUBLE = NcclDataType.FLOAT64
BFLOAT16 = NcclDataType.BFLOAT16
FLOAT8E4M3 = NcclDataType.FLOAT8E4M3
FLOAT8E5M2 = NcclDataType.FLOAT8E5M2
SUM = NcclRedOp.SUM
PROD = NcclRedOp.PROD
MAX = NcclRedOp.MAX
MIN = NcclRedOp.MIN
AVG = NcclRedOp.AVG

__all__ = _device_names + _errors + _types
__all__ += ["Buffer", "Communicator", "CustomRedOp", "GroupSimInfo", "LibraryInfo", "RankFailed", "RegisteredBufferHandle"]
__all__ += ["RegisteredWindowHandle", "Stream", "__version__", "empty", "get_error_string", "get_unique_id", "group", "group_end"]
__all__ += ["group_start", "library_info", "mem_alloc", "mem_free", "spawn", "view", "zeros"]
__all__ += [t for t in NcclDataType.__members__] + [o for o in NcclRedOp.__members__]
