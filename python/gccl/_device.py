"""Device communicators: what kernels of CuPy, Numba, Triton or NVRTC, and kernels on the CPU, are given to communicate themselves.

The structures are those of ``gccl_device/core.h``; kernels are compiled with that header.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum

from . import _exit, _group
from ._errors import NcclInvalid
from ._library import calls
from ._types import API_MAGIC, API_VERSION, UNDEFINED, keyword_fields

TYPE_CHECKING = False  # as of typing, which is most of the time that an import would take
if TYPE_CHECKING:
    from typing import Any, List, Optional, Sequence

    from ._communicator import Communicator

__all__ = ["CommProperties", "DevCommResource", "DevResource", "LLA2ARequirement", "NCCLDevCommRequirements", "NcclGinConnectionType", "NcclGinType"]

STAMP = 2  # GCCL_DEVICE_STAMP: kernels are compiled with this library's header


class NcclGinType(IntEnum):
    """Who carries the kernels' operations beyond loads and stores (``ncclGinType_t``)."""

    NONE = 0
    PROXY = 2
    GDAKI = 3
    GPI = 4


class NcclGinConnectionType(IntEnum):
    """Which peers GIN reaches (``ncclGinConnectionType_t``)."""

    NONE = 0
    FULL = 1
    RAIL = 2


class CResource(ctypes.Structure):
    """``ncclDevResourceRequirements_t``."""

    _fields_ = [
        ("next", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("align", ctypes.c_size_t),
        ("out_handle", ctypes.c_void_p),
        ("gin_signal_count", ctypes.c_int),
        ("gin_counter_count", ctypes.c_int),
        ("out_signal", ctypes.c_void_p),
        ("out_counter", ctypes.c_void_p),
    ]


class CRequirements(ctypes.Structure):
    """``ncclDevCommRequirements_t`` of 2.30.7; the names are Python's."""

    _fields_ = [
        ("c_size", ctypes.c_size_t),
        ("c_magic", ctypes.c_uint),
        ("c_version", ctypes.c_uint),
        ("c_resources", ctypes.c_void_p),
        ("c_teams", ctypes.c_void_p),
        ("lsa_multimem", ctypes.c_bool),
        ("barrier_count", ctypes.c_int),
        ("lsa_barrier_count", ctypes.c_int),
        ("rail_gin_barrier_count", ctypes.c_int),
        ("lsa_ll_a2a_block_count", ctypes.c_int),
        ("lsa_ll_a2a_slot_count", ctypes.c_int),
        ("gin_force_enable", ctypes.c_bool),
        ("gin_context_count", ctypes.c_int),
        ("gin_signal_count", ctypes.c_int),
        ("gin_counter_count", ctypes.c_int),
        ("gin_connection_type", ctypes.c_int),
        ("gin_exclusive_contexts", ctypes.c_bool),
        ("gin_queue_depth", ctypes.c_int),
        ("gin_traffic_class", ctypes.c_int),
        ("world_gin_barrier_count", ctypes.c_int),
        ("gin_strong_signals_required", ctypes.c_bool),
        ("gin_va_signals_required", ctypes.c_bool),
    ]

    def __init__(self) -> None:  # NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER
        super().__init__(ctypes.sizeof(CRequirements), API_MAGIC, API_VERSION)
        self.gin_context_count, self.gin_traffic_class = 4, UNDEFINED
        self.gin_strong_signals_required = self.gin_va_signals_required = True


class CProperties(ctypes.Structure):
    """``ncclCommProperties_t``; the names are Python's."""

    _fields_ = [
        ("c_size", ctypes.c_size_t),
        ("c_magic", ctypes.c_uint),
        ("c_version", ctypes.c_uint),
        ("rank", ctypes.c_int),
        ("nranks", ctypes.c_int),
        ("cuda_dev", ctypes.c_int),
        ("nvml_dev", ctypes.c_int),
        ("device_api_support", ctypes.c_bool),
        ("multimem_support", ctypes.c_bool),
        ("gin_type", ctypes.c_int),
        ("n_lsa_teams", ctypes.c_int),
        ("host_rma_support", ctypes.c_bool),
        ("railed_gin_type", ctypes.c_int),
    ]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(CProperties), API_MAGIC, API_VERSION)


class CDevComm(ctypes.Structure):
    """``ncclDevComm``: the fields that programs read, and room for the rest."""

    _fields_ = [
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("rank", ctypes.c_int),
        ("nranks", ctypes.c_int),
        ("_nranks_rcp32", ctypes.c_uint32),
        ("lsa_rank", ctypes.c_int),
        ("lsa_size", ctypes.c_int),
        ("_lsa_size_rcp32", ctypes.c_uint32),
        ("_rest", ctypes.c_uint64 * 26),
    ]


class CommProperties:
    """What a communicator can do, as :meth:`Communicator.query_properties` found it (``ncclCommProperties_t``).

    Attributes:
        rank, nranks: of the communicator.
        cuda_dev, nvml_dev: numbers of the device for CUDA and NVML; -1 where there is none.
        device_api_support: :meth:`Communicator.create_dev_comm` works.
        multimem_support: multicast addresses can be had.
        gin_type, railed_gin_type: :class:`NcclGinType` between all ranks, and along rails.
        n_lsa_teams: into how many teams, whose ranks load and store each other's memory, the ranks are divided.
        host_rma_support: :meth:`Communicator.put_signal` and its family work.
    """

    __slots__ = tuple(name for name, _ in CProperties._fields_[3:])

    def __init__(self, c: CProperties) -> None:
        for name in self.__slots__:
            value = getattr(c, name)
            setattr(self, name, NcclGinType(value) if name.endswith("gin_type") else value)

    def __repr__(self) -> str:
        return f"CommProperties({', '.join(f'{n}={getattr(self, n)!r}' for n in self.__slots__)})"


class DevResource:
    """Memory that a device communicator brings: zero-filled, at the same place on every rank. For ``resources=`` of the requirements.

    Args:
        size, align: bytes; an alignment below 128 is 128.
        gin_signal_count, gin_counter_count: signals and counters of its own.

    Attributes, from :meth:`Communicator.create_dev_comm` on:
        handle: the ``ncclDevResourceHandle`` that kernels are given.
        gin_signal_start, gin_counter_start: numbers of the first signal and counter.
    """

    def __init__(self, size: int, align: int = 128, gin_signal_count: int = 0, gin_counter_count: int = 0) -> None:
        self.size, self.align = size, align
        self.gin_signal_count, self.gin_counter_count = gin_signal_count, gin_counter_count
        self._out = (ctypes.c_uint32 * 3)()

    def _to_c(self) -> CResource:
        at, signals, counters = ctypes.addressof(self._out), self.gin_signal_count, self.gin_counter_count
        return CResource(None, self.size, self.align, at, signals, counters, at + 4, at + 8)

    handle = property(lambda self: self._out[0])
    gin_signal_start = property(lambda self: self._out[1])
    gin_counter_start = property(lambda self: self._out[2])

    def __repr__(self) -> str:
        return f"<gccl.{type(self).__name__} of {self.size} bytes, handle {self.handle}>"


class LLA2ARequirement(DevResource):
    """Lines for ``ncclLLA2ASession`` of block_count blocks with slot_count slots each (``ncclLLA2ACalcSlots`` says how many).

    ``bytes(requirement)`` is the ``ncclLLA2AHandle`` that kernels are given, once the device communicator is made.
    """

    def __init__(self, block_count: int, slot_count: int) -> None:
        self._handle, asked = (ctypes.c_uint32 * 2)(), CResource()  # ncclLLA2AHandle: a resource's handle, slots
        rc = calls.ncclLLA2ACreateRequirement(block_count, slot_count, self._handle, ctypes.byref(asked))
        if rc:
            raise NcclInvalid(f"LLA2ARequirement: {block_count} blocks of {slot_count} slots: both must be 1 or more, and fit 32 bits")
        super().__init__(asked.size, asked.align)

    def __bytes__(self) -> bytes:
        return bytes((ctypes.c_uint32 * 2)(self.handle, self._handle[1]))


_FIELDS = tuple(name for name, _ in CRequirements._fields_ if not name.startswith("c_"))


class NCCLDevCommRequirements:
    """What kernels need; what is not given is NCCL's default (``ncclDevCommRequirements_t`` in gccl_device/core.h says what each means).

    All are keywords: ``NCCLDevCommRequirements(lsa_barrier_count=16, gin_signal_count=1)``, of the fields of the C structure, and
    ``resources``, a list of :class:`DevResource`. TypeError for a name that there is not.
    """

    __slots__ = _FIELDS + ("resources",)

    def __init__(self, *, resources: Sequence[DevResource] = (), **options: Any) -> None:
        self.resources = list(resources)
        keyword_fields(self, _FIELDS, options)

    def __repr__(self) -> str:
        given = [f"{n}={getattr(self, n)!r}" for n in _FIELDS if getattr(self, n) is not None]
        return f"NCCLDevCommRequirements({', '.join(given + ([f'resources={self.resources!r}'] if self.resources else []))})"

    def to_c(self) -> CRequirements:
        """The C structure. The lists in it live as long as it does."""
        c = CRequirements()
        for name in _FIELDS:
            value = getattr(self, name)
            if value is not None:
                setattr(c, name, int(value))
        c.keep = [r._to_c() for r in self.resources]
        for element, following in zip(c.keep, c.keep[1:]):
            element.next = ctypes.addressof(following)
        if c.keep:
            c.c_resources = ctypes.addressof(c.keep[0])
        return c


class DevCommResource:
    """A device communicator, from :meth:`Communicator.create_dev_comm`. close(), a with statement or the communicator's end releases it.

    Kernels take ``ncclDevComm`` by value or by pointer:

    - by value: :meth:`as_argument` for CuPy, ``bytes(dev)`` or :attr:`ptr` (an address on the host) for a driver's launch;
    - by pointer: :attr:`device_ptr`, an address that kernels read, for Numba and Triton, whose arguments are numbers and arrays.

    Inside a group it is there after the group's end.
    """

    def __init__(self, comm: "Communicator") -> None:
        self._comm = comm
        self._open = False
        self.dev_comm = CDevComm()
        """The structure: ``rank``, ``nranks``, ``lsa_rank`` and ``lsa_size`` may be read."""

    def _create(self, requirements: NCCLDevCommRequirements) -> int:
        c = requirements.to_c()
        if _group.inside():
            _group.keep(self, c, requirements)
            _group.at_end(self._ran)
        elif not self._comm.blocking:
            self._comm._kept.append((self, c, requirements))
        rc = calls.gcclDevCommCreate(self._comm._ptr, ctypes.byref(c), ctypes.byref(self.dev_comm), STAMP)
        if not _group.inside():
            self._ran(rc in (0, 7))
        return rc

    def _ran(self, ran: bool) -> None:
        self._open = ran

    @property
    def is_valid(self) -> bool:
        """Whether it is made, not closed, and its communicator lives."""
        return self._open and self.dev_comm.magic == API_MAGIC and self._comm.is_valid

    def _valid(self) -> None:
        if not self.is_valid:
            raise NcclInvalid(f"{self!r}: it was closed, its communicator has ended, or is still being made (see Communicator.wait)")

    @property
    def ptr(self) -> int:
        """Address of the structure in this process's memory, which a launch by the driver copies from."""
        self._valid()
        return ctypes.addressof(self.dev_comm)

    @property
    def device_ptr(self) -> int:
        """Address of a copy of the structure that this rank's kernels read; good until close()."""
        self._valid()
        out = ctypes.c_void_p()
        rc = calls.gcclDevCommGetDevicePointer(self._comm._ptr, ctypes.byref(self.dev_comm), ctypes.byref(out))
        self._comm._check(rc, "gcclDevCommGetDevicePointer")
        return out.value or 0

    def __bytes__(self) -> bytes:
        self._valid()
        return bytes(self.dev_comm)

    def as_argument(self) -> Any:
        """The structure as a numpy array of one element, which a kernel of ``cupy.RawModule`` or ``RawKernel`` gets by value."""
        import numpy

        return numpy.frombuffer(bytes(self), f"V{ctypes.sizeof(CDevComm)}")

    def close(self) -> None:
        """Releases it. Kernels that use it have ended, on all ranks. Twice is once."""
        if self.is_valid and _exit.ours():
            self._open = False
            self._comm._check(calls.ncclDevCommDestroy(self._comm._ptr, ctypes.byref(self.dev_comm)), "ncclDevCommDestroy")
        self._open = False

    def __enter__(self) -> "DevCommResource":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gccl.DevCommResource of {self._comm!r}{'' if self.is_valid else ', not valid'}>"
