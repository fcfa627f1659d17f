/* Devices that are names: how many, which one a thread means, and what they say of themselves. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cudart.h"

enum { DEFAULT_DEVICES = 4, MOST_DEVICES = 64 };

static _Thread_local int current;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int devices;
static uint8_t peers[MOST_DEVICES][MOST_DEVICES]; /* access from, to; atomic */

/* Communicators of this process work on ordinary memory: a driver that may be there has nothing to do with these devices. */
__attribute__((constructor)) static void host_mode(void) { setenv("GCCL_DEVICE", "host", 0); }

static void count(void) {
  const char *text = getenv("GCCL_CUDART_DEVICES");
  long n = text && *text ? strtol(text, NULL, 10) : DEFAULT_DEVICES;
  devices = n < 1 ? 1 : n > MOST_DEVICES ? MOST_DEVICES : (int)n;
}

int cudart_devices(void) {
  pthread_once(&once, count);
  return devices;
}

int cudart_current(void) { return current; }

uint64_t cudart_memory(void) {
  return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / (uint64_t)cudart_devices() & ~(uint64_t)0xfffff;
}

static int cpus(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static int bad_device(int d) { return d < 0 || d >= cudart_devices(); }

CUDART_API cudaError_t cudaGetDeviceCount(int *n) {
  if (!n) return cudart_set(ERR_INVALID_VALUE);
  *n = cudart_devices();
  return OK;
}

CUDART_API cudaError_t cudaSetDevice(int d) {
  if (bad_device(d)) return cudart_set(ERR_DEVICE);
  current = d;
  return OK;
}

CUDART_API cudaError_t cudaInitDevice(int d, unsigned device_flags, unsigned flags) {
  (void)device_flags, (void)flags;
  return bad_device(d) ? cudart_set(ERR_DEVICE) : OK;
}

CUDART_API cudaError_t cudaGetDevice(int *d) {
  if (!d) return cudart_set(ERR_INVALID_VALUE);
  *d = current;
  return OK;
}

CUDART_API cudaError_t cudaSetDeviceFlags(unsigned flags) { return (void)flags, OK; }

CUDART_API cudaError_t cudaDeviceSynchronize(void) { return cudart_drain(current, 1), OK; }

CUDART_API cudaError_t cudaDeviceReset(void) { return cudart_drain(current, 1), OK; }

CUDART_API cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  if (!free || !total) return cudart_set(ERR_INVALID_VALUE);
  uint64_t all = cudart_memory(), used = cudart_memory_used(current);
  *total = all;
  *free = used < all ? all - used : 0;
  return OK;
}

/* 12.8 and 13.0: programs compare with what they need. */
CUDART_API cudaError_t cudaRuntimeGetVersion(int *v) {
  if (!v) return cudart_set(ERR_INVALID_VALUE);
  *v = CUDART_VERSION_OF_LINK;
  return OK;
}

CUDART_API cudaError_t cudaDriverGetVersion(int *v) { return cudaRuntimeGetVersion(v); }

/* ---- Properties -------------------------------------------------------------------------------------------------- */

/* Where fields of struct cudaDeviceProp are; the head is the same in both. CUDA 12 calls its function _v2, 13 has the plain name. */
typedef struct {
  size_t size, processors, integrated, map_host, concurrent, pci_bus, pci_device, pci_domain, engines, unified, threads, managed;
} layout;
static const layout layout12 = {1032, 388, 396, 400, 576, 584, 588, 592, 600, 604, 624, 652};
static const layout layout13 = {1008, 384, 388, 392, 560, 568, 572, 576, 584, 588, 604, 636};
enum { AT_UUID = 256, AT_MEMORY = 288, AT_WARP = 308, AT_BLOCK = 320, AT_DIM = 324, AT_GRID = 336, AT_MAJOR = 360, AT_MINOR = 364 };

static void put(void *prop, size_t at, int v) { memcpy((char *)prop + at, &v, sizeof v); }

static cudaError_t properties(void *prop, int d, const layout *l) {
  if (!prop) return cudart_set(ERR_INVALID_VALUE);
  if (bad_device(d)) return cudart_set(ERR_DEVICE);
  memset(prop, 0, l->size);
  snprintf(prop, 256, "GCCL host device %d", d);
  char uuid[24] = "";
  snprintf(uuid, sizeof uuid, "gccl-host-%d", d);
  memcpy((char *)prop + AT_UUID, uuid, 16);
  uint64_t bytes = cudart_memory();
  memcpy((char *)prop + AT_MEMORY, &bytes, sizeof bytes);
  put(prop, AT_WARP, 1);
  put(prop, AT_BLOCK, 1);
  for (int i = 0; i < 3; i++) put(prop, AT_DIM + 4 * (size_t)i, 1), put(prop, AT_GRID + 4 * (size_t)i, 1);
  put(prop, AT_MAJOR, 0), put(prop, AT_MINOR, 0); /* no compute capability: nothing runs kernels here */
  put(prop, l->processors, cpus());
  put(prop, l->integrated, 1);
  put(prop, l->map_host, 1);
  put(prop, l->concurrent, 0);
  put(prop, l->pci_bus, d);
  put(prop, l->engines, 1);
  put(prop, l->unified, 1);
  put(prop, l->threads, 1);
  put(prop, l->managed, 1);
  return OK;
}

CUDART_API cudaError_t cudaGetDeviceProperties_v2(void *prop, int d) { return properties(prop, d, &layout12); }
CUDART_API cudaError_t cudaGetDeviceProperties(void *prop, int d) { return properties(prop, d, &layout13); }

/* enum cudaDeviceAttr. What a host device has not is 0. */
CUDART_API cudaError_t cudaDeviceGetAttribute(int *v, int attribute, int d) {
  if (!v || attribute < 1 || attribute > 200) return cudart_set(ERR_INVALID_VALUE);
  if (bad_device(d)) return cudart_set(ERR_DEVICE);
  switch (attribute) {
  case 1:
  case 2:
  case 3:
  case 4:
  case 5:
  case 6:
  case 7:  /* threads of a block, dimensions */
  case 10: /* warp size */
  case 18:
  case 19: /* integrated, can map host memory */
  case 39:
  case 40:
  case 41: /* threads of a processor, copy engines, unified addressing */
  case 83:
  case 86:
  case 88:
  case 91:
  case 99: /* managed, host atomics, pageable access, host pointers, host register */ *v = 1; break;
  case 16: *v = cpus(); break;
  case 33: *v = d; break;
  default: *v = 0;
  }
  return OK;
}

CUDART_API cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int d) {
  if (!text || size < 13) return cudart_set(ERR_INVALID_VALUE);
  if (bad_device(d)) return cudart_set(ERR_DEVICE);
  snprintf(text, (size_t)size, "0000:%02x:00.0", d);
  return OK;
}

CUDART_API cudaError_t cudaDeviceGetByPCIBusId(int *d, const char *text) {
  unsigned domain, bus, slot, function;
  if (!d || !text) return cudart_set(ERR_INVALID_VALUE);
  if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4 || domain || slot || function || bad_device((int)bus))
    return cudart_set(ERR_DEVICE);
  *d = (int)bus;
  return OK;
}

/* ---- Access between devices: there is one memory; programs want to see that it is switched on once ----------------- */

CUDART_API cudaError_t cudaDeviceCanAccessPeer(int *can, int d, int peer) {
  if (!can) return cudart_set(ERR_INVALID_VALUE);
  if (bad_device(d) || bad_device(peer)) return cudart_set(ERR_DEVICE);
  *can = d != peer;
  return OK;
}

CUDART_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (flags) return cudart_set(ERR_INVALID_VALUE);
  if (bad_device(peer) || peer == current) return cudart_set(ERR_DEVICE);
  return __atomic_exchange_n(&peers[current][peer], 1, __ATOMIC_RELAXED) ? cudart_set(ERR_PEER_ON) : OK;
}

CUDART_API cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (bad_device(peer)) return cudart_set(ERR_DEVICE);
  return __atomic_exchange_n(&peers[current][peer], 0, __ATOMIC_RELAXED) ? OK : cudart_set(ERR_PEER_OFF);
}

CUDART_API cudaError_t cudaProfilerStart(void) { return OK; }
CUDART_API cudaError_t cudaProfilerStop(void) { return OK; }
