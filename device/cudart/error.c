/* Errors of a thread, and their names. */
#include "cudart.h"

static _Thread_local cudaError_t last;

cudaError_t cudart_set(cudaError_t e) {
  if (e != OK && e != ERR_NOT_READY) last = e; /* not ready is an answer (cudaStreamQuery, cudaEventQuery) */
  return e;
}

cudaError_t cudart_of(ncclResult_t rc) {
  switch (rc) {
  case ncclSuccess: return OK;
  case ncclInProgress: return ERR_NOT_READY;
  case ncclInvalidArgument: return cudart_set(ERR_HANDLE);
  default: return cudart_set(ERR_SYSTEM);
  }
}

CUDART_API cudaError_t cudaGetLastError(void) {
  cudaError_t e = last;
  last = OK;
  return e;
}

CUDART_API cudaError_t cudaPeekAtLastError(void) { return last; }

/* Those that this library returns, and those that programs ask about when they print what a CUDA call or NCCL gave. */
static const struct {
  int code;
  const char *name, *text;
} errors[] = {
    {OK, "cudaSuccess", "no error"},
    {ERR_INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument"},
    {ERR_MEMORY, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "initialization error"},
    {ERR_DIRECTION, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {35, "cudaErrorInsufficientDriver", "the driver is older than the runtime needs"},
    {100, "cudaErrorNoDevice", "no device"},
    {ERR_DEVICE, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {ERR_SYSTEM, "cudaErrorOperatingSystem", "a call to the operating system failed"},
    {ERR_HANDLE, "cudaErrorInvalidResourceHandle", "invalid stream or event"},
    {ERR_NOT_READY, "cudaErrorNotReady", "not ready: asynchronous work is not finished"},
    {700, "cudaErrorIllegalAddress", "illegal memory access"},
    {ERR_PEER_ON, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {ERR_PEER_OFF, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {ERR_REGISTERED, "cudaErrorHostMemoryAlreadyRegistered", "the memory is already registered"},
    {ERR_NOT_REGISTERED, "cudaErrorHostMemoryNotRegistered", "the memory is not registered"},
    {719, "cudaErrorLaunchFailure", "launch failure"},
    {ERR_NOT_SUPPORTED, "cudaErrorNotSupported", "not supported by the host runtime of GCCL"},
    {999, "cudaErrorUnknown", "unknown error"},
};

CUDART_API const char *cudaGetErrorString(cudaError_t e) {
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
    if (errors[i].code == e) return errors[i].text;
  return "unrecognized error code";
}

CUDART_API const char *cudaGetErrorName(cudaError_t e) {
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
    if (errors[i].code == e) return errors[i].name;
  return "unrecognized error code";
}
