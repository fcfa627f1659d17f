"""Enumerations and structures of the C interface (``gccl.h``), under the names that nccl4py gives them."""

from __future__ import annotations

import ctypes
from enum import IntEnum, IntFlag

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Tuple, Union

__all__ = [
    "NcclDataType",
    "NcclRedOp",
    "NcclCommMemStat",
    "CTAPolicy",
    "CommShrinkFlag",
    "CommSuspendFlag",
    "WindowFlag",
    "NCCLConfig",
    "UniqueId",
    "WaitSignalDesc",
]

UNIQUE_ID_BYTES = 128
API_MAGIC = 0xCAFEBEEF
API_VERSION = 23007  # of the structures below: NCCL_VERSION_CODE in gccl.h
UNDEFINED = -(2**31)  # NCCL_CONFIG_UNDEF_INT


class NcclDataType(IntEnum):
    """Element types (``ncclDataType_t``)."""

    INT8 = 0
    CHAR = 0
    UINT8 = 1
    INT32 = 2
    INT = 2
    UINT32 = 3
    INT64 = 4
    UINT64 = 5
    FLOAT16 = 6
    HALF = 6
    FLOAT32 = 7
    FLOAT = 7
    FLOAT64 = 8
    DOUBLE = 8
    BFLOAT16 = 9
    FLOAT8E4M3 = 10
    FLOAT8E5M2 = 11

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return ITEMSIZE[self]


ITEMSIZE = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)

# Names of element types in numpy, ml_dtypes and torch.
BY_NAME: Dict[str, int] = {
    "int8": 0,
    "uint8": 1,
    "int32": 2,
    "uint32": 3,
    "int64": 4,
    "uint64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
    "float8_e4m3fn": 10,
    "float8_e5m2": 11,
}
NAMES = tuple(sorted(BY_NAME, key=lambda n: BY_NAME[n]))


class NcclRedOp(IntEnum):
    """Built-in operators (``ncclRedOp_t``). AVG of integers is the sum divided towards zero."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    AVG = 4


class NcclCommMemStat(IntEnum):
    """What :meth:`Communicator.get_mem_stat` reports; bytes, except for SUSPENDED, which is 0 or 1."""

    GPU_MEM_SUSPEND = 0
    GPU_MEM_SUSPENDED = 1
    GPU_MEM_PERSIST = 2
    GPU_MEM_TOTAL = 3


class CTAPolicy(IntFlag):
    """Values of ``NCCLConfig.cta_policy``."""

    DEFAULT = 0
    EFFICIENCY = 1
    ZERO = 2


class CommShrinkFlag(IntEnum):
    """DEFAULT: the parent is idle. ABORT: running operations of the parent are ended first."""

    DEFAULT = 0
    ABORT = 1


class CommSuspendFlag(IntFlag):
    """What :meth:`Communicator.suspend` releases."""

    MEM = 1


class WindowFlag(IntFlag):
    """Flags of :meth:`Communicator.register_window`."""

    DEFAULT = 0
    COLL_SYMMETRIC = 1
    STRICT_ORDERING = 2


class CUniqueId(ctypes.Structure):
    """``ncclUniqueId``."""

    _fields_ = [("internal", ctypes.c_char * UNIQUE_ID_BYTES)]


class CConfig(ctypes.Structure):
    """``ncclConfig_t`` of 2.30.7; the order is that of gccl.h, the names are Python's."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("blocking", ctypes.c_int),
        ("cga_cluster_size", ctypes.c_int),
        ("min_ctas", ctypes.c_int),
        ("max_ctas", ctypes.c_int),
        ("net_name", ctypes.c_char_p),
        ("split_share", ctypes.c_int),
        ("traffic_class", ctypes.c_int),
        ("comm_name", ctypes.c_char_p),
        ("collnet_enable", ctypes.c_int),
        ("cta_policy", ctypes.c_int),
        ("shrink_share", ctypes.c_int),
        ("nvls_ctas", ctypes.c_int),
        ("n_channels_per_net_peer", ctypes.c_int),
        ("nvlink_centric_sched", ctypes.c_int),
        ("graph_usage_mode", ctypes.c_int),
        ("num_rma_ctx", ctypes.c_int),
        ("max_p2p_peers", ctypes.c_int),
        ("graph_stream_ordering", ctypes.c_int),
    ]


class CSimInfo(ctypes.Structure):
    """``ncclSimInfo_t``; estimated_time is in microseconds."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("estimated_time", ctypes.c_float),
    ]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(CSimInfo), 0x74685283, API_VERSION, -1.0)


class CStats(ctypes.Structure):
    """``gcclCommStats_t``."""

    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint)] + [
        (name, ctypes.c_uint64)
        for name in ("calls", "table_hits", "table_misses", "bytes", "shared_bytes", "private_bytes", "front_nanoseconds")
    ]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(CStats), API_MAGIC, API_VERSION)


class CWaitSignal(ctypes.Structure):
    """``ncclWaitSignalDesc_t``."""

    _fields_ = [("op_count", ctypes.c_int), ("peer", ctypes.c_int), ("signal_index", ctypes.c_int), ("context", ctypes.c_int)]


_CONFIG_FIELDS = tuple(field[0] for field in CConfig._fields_[3:])
_CONFIG_TEXT = ("net_name", "comm_name")


def keyword_fields(to: Any, names: Tuple[str, ...], options: Dict[str, Any]) -> None:
    """Sets the fields of an object of options; those that are not given are None."""
    for name in names:
        setattr(to, name, options.pop(name, None))
    if options:
        raise TypeError(f"{type(to).__name__} has no option {sorted(options)[0]!r}; it has {', '.join(names)}")


class NCCLConfig:
    """Options of a new communicator; what is not given is left to the library (``ncclConfig_t`` in gccl.h says what each means).

    All are keywords: ``NCCLConfig(blocking=False, comm_name="training")``. TypeError for a name that there is not.
    """

    __slots__ = _CONFIG_FIELDS

    blocking: Optional[bool]
    cga_cluster_size: Optional[int]
    min_ctas: Optional[int]
    max_ctas: Optional[int]
    net_name: Optional[str]
    split_share: Optional[bool]
    traffic_class: Optional[int]
    comm_name: Optional[str]
    collnet_enable: Optional[bool]
    cta_policy: Optional[CTAPolicy]
    shrink_share: Optional[bool]
    nvls_ctas: Optional[int]
    n_channels_per_net_peer: Optional[int]
    nvlink_centric_sched: Optional[bool]
    graph_usage_mode: Optional[int]
    num_rma_ctx: Optional[int]
    max_p2p_peers: Optional[int]
    graph_stream_ordering: Optional[int]

    def __init__(self, **options: Any) -> None:
        keyword_fields(self, _CONFIG_FIELDS, options)

    def __repr__(self) -> str:
        given = (f"{n}={getattr(self, n)!r}" for n in _CONFIG_FIELDS if getattr(self, n) is not None)
        return f"NCCLConfig({', '.join(given)})"

    def to_c(self) -> CConfig:
        """The C structure. Texts in it live as long as it does."""
        c = CConfig(ctypes.sizeof(CConfig), API_MAGIC, API_VERSION)
        for name in _CONFIG_FIELDS:
            value = getattr(self, name)
            if name in _CONFIG_TEXT:
                setattr(c, name, None if value is None else str(value).encode())
            else:
                setattr(c, name, UNDEFINED if value is None else int(value))
        return c


class UniqueId:
    """Names a communicator that is to be made: 128 opaque bytes, made by :func:`get_unique_id` on one rank and handed to all.

    It pickles, ``bytes(id)`` gives the bytes and :meth:`from_bytes` takes them.
    """

    __slots__ = ("_c",)

    def __init__(self, c: Optional[CUniqueId] = None) -> None:
        self._c = c if c is not None else CUniqueId()

    @staticmethod
    def from_bytes(b: Union[bytes, bytearray, memoryview]) -> "UniqueId":
        """The id with these 128 bytes; ValueError for another length."""
        if len(b) != UNIQUE_ID_BYTES:
            raise ValueError(f"a unique id has {UNIQUE_ID_BYTES} bytes, not {len(b)}")
        return UniqueId(CUniqueId.from_buffer_copy(b))

    def __bytes__(self) -> bytes:
        return bytes(memoryview(self._c).cast("B"))

    @property
    def as_bytes(self) -> bytes:
        """The bytes."""
        return bytes(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UniqueId) and bytes(self) == bytes(other)

    def __hash__(self) -> int:
        return hash(bytes(self))

    def __reduce__(self) -> Tuple[Any, ...]:
        return UniqueId.from_bytes, (bytes(self),)

    def __repr__(self) -> str:
        b = bytes(self)
        return f"<UniqueId {b[:4].hex()}...{b[-4:].hex()}>"


class WaitSignalDesc:
    """One entry of :meth:`Communicator.wait_signal`: op_count signals (1 or more) of rank peer. signal_index and context are 0."""

    __slots__ = ("peer", "op_count", "signal_index", "context")

    def __init__(self, peer: int, op_count: int = 1, signal_index: int = 0, context: int = 0) -> None:
        self.peer, self.op_count, self.signal_index, self.context = peer, op_count, signal_index, context

    def __repr__(self) -> str:
        return f"WaitSignalDesc(peer={self.peer}, op_count={self.op_count})"
