"""Memory and streams of the CUDA driver by ctypes: buffers for the package where there is no torch, over a GPU or over the stand-in."""

import ctypes
import os

import numpy as np


class CudaArray:
    """Memory of the driver with ``__cuda_array_interface__``, as CuPy's arrays have it."""

    def __init__(self, driver, values):
        self.driver, self.shape, self.dtype = driver, values.shape, values.dtype
        self.address = driver.allocate(max(values.nbytes, 1))
        driver.write(self.address, values)
        typestr = values.dtype.str if values.dtype.kind in "iuf" else f"|V{values.dtype.itemsize}"
        self.__cuda_array_interface__ = {"version": 3, "shape": self.shape, "typestr": typestr, "strides": None, "data": (self.address, False)}

    def __del__(self):
        self.driver.free(self.address)


class Driver:
    """The context, one stream, copies."""

    def __init__(self):
        self._lib = ctypes.CDLL(os.environ.get("GCCL_CUDA_LIBRARY") or "libcuda.so.1")
        device, context, stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        self("cuStreamCreate", ctypes.byref(stream), 1)
        self.stream = stream.value

    def __call__(self, name, *args):
        rc = getattr(self._lib, name)(*args)
        assert rc == 0, f"{name}: CUDA error {rc}"

    def allocate(self, size):
        p = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(p), ctypes.c_size_t(size))
        return p.value

    def free(self, address):
        self._lib.cuMemFree_v2(ctypes.c_uint64(address))

    def write(self, address, values):
        values = np.ascontiguousarray(values)
        if values.nbytes:
            self("cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(values.ctypes.data), ctypes.c_size_t(values.nbytes))

    def read(self, address, shape, dtype):
        out = np.empty(shape, dtype)
        if out.nbytes:
            self("cuMemcpyDtoH_v2", ctypes.c_void_p(out.ctypes.data), ctypes.c_uint64(address), ctypes.c_size_t(out.nbytes))
        return out

    def synchronize(self):
        self("cuStreamSynchronize", ctypes.c_void_p(self.stream))


class DriverStore:
    """Buffers of the driver for the tests of cuda_ranks. Work goes to a stream of the driver's."""

    def __init__(self):
        self.driver = Driver()
        self.stream = {"stream": self.driver.stream}
        self.types = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
        try:
            import ml_dtypes

            self._more = {n: np.dtype(getattr(ml_dtypes, n)) for n in ("bfloat16", "float8_e4m3fn", "float8_e5m2")}
        except ImportError:
            self._more = {}
        self.types += self._more

    def put(self, values, name):
        """A buffer with these numbers."""
        return CudaArray(self.driver, np.asarray(values).astype(self._more.get(name) or name))

    def get(self, buffer):
        """Its numbers, once the work of the stream is done."""
        self.driver.synchronize()
        return self.driver.read(buffer.address, buffer.shape, buffer.dtype).astype(np.float64)

    def put_into(self, buffer, values):
        """Writes numbers to a buffer of gccl.empty."""
        self.driver.write(buffer.__cuda_array_interface__["data"][0], np.asarray(values, np.float32))

    def get_from(self, buffer):
        """Numbers of a buffer of gccl.empty."""
        self.driver.synchronize()
        return self.driver.read(buffer.__cuda_array_interface__["data"][0], buffer.shape, np.float32).astype(np.float64)
