/* onedevice.c: preloaded into programs that take one GPU for each rank, so that all their ranks share one: the CUDA runtime says that
 * there are ONEDEVICE_COUNT devices (8), and each of them is the first. Such programs must link the runtime as a library.
 * ONEDEVICE_NCCL_VERSION is what ncclGetVersion answers, for programs that refuse to run with a library newer than their header. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#define REAL(NAME, ...) ((int (*)(__VA_ARGS__))dlsym(RTLD_NEXT, NAME))

int cudaGetDeviceCount(int *count) {
  int rc = REAL("cudaGetDeviceCount", int *)(count);
  const char *n = getenv("ONEDEVICE_COUNT");
  if (!rc) *count = n ? atoi(n) : 8;
  return rc;
}

int cudaSetDevice(int device) {
  (void)device;
  return REAL("cudaSetDevice", int)(0);
}

int cudaDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  return REAL("cudaDeviceGetAttribute", int *, int, int)(value, attribute, 0);
}

int cudaGetDeviceProperties(void *properties, int device) {
  (void)device;
  return REAL("cudaGetDeviceProperties", void *, int)(properties, 0);
}

int cudaDeviceGetPCIBusId(char *id, int length, int device) {
  (void)device;
  return REAL("cudaDeviceGetPCIBusId", char *, int, int)(id, length, 0);
}

int ncclGetVersion(int *version) {
  const char *n = getenv("ONEDEVICE_NCCL_VERSION");
  if (!n || !version) return REAL("ncclGetVersion", int *)(version);
  *version = atoi(n);
  return 0;
}
