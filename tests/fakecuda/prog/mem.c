/* Memory: allocation, attributes, mapping, other processes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "fc.h"

enum { MIB = 1 << 20 };

void case_memory(void) {
  fc_start();
  CUdeviceptr p = 0, q = 0, base = 0;
  size_t size = 0, before = 0, now = 0, total = 0;
  unsigned long long id[2] = {0};
  OK(cu.MemGetInfo(&before, &total));
  OK(cu.MemAlloc(&p, 3 * MIB));
  OK(cu.PointerGetAttribute(&id[0], CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
  OK(cu.MemGetAddressRange(&base, &size, p + 12345));
  TRUE(base == p && size == 3 * MIB);
  OK(cu.MemGetInfo(&now, &total));
  TRUE(now < before);
  OK(cu.MemFree(p));
  OK(cu.MemGetInfo(&now, &total));
  TRUE(now == before);
  OK(cu.MemAlloc(&q, 3 * MIB));
  OK(cu.PointerGetAttribute(&id[1], CU_POINTER_ATTRIBUTE_BUFFER_ID, q));
  TRUE(p == q); /* the same address, another buffer */
  TRUE(id[0] != id[1]);
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemFree(q + 4096));
  OK(cu.MemFree(q));
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemFree(q));
  OK(cu.MemFree(0));
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemAlloc(&q, 0));
  IS(CUDA_ERROR_OUT_OF_MEMORY, cu.MemAlloc(&q, (size_t)1 << 50));
  IS(CUDA_ERROR_OUT_OF_MEMORY, cu.MemAlloc(&q, SIZE_MAX - 5));
  /* Copies: what is written comes back; freed memory is refused. */
  char in[100], out[100] = {0};
  for (int i = 0; i < 100; i++) in[i] = (char)i;
  OK(cu.MemAlloc(&p, 200));
  OK(cu.MemcpyHtoD(p, in, 100));
  OK(cu.MemcpyDtoDAsync(p + 100, p, 100, NULL));
  OK(cu.MemsetD8Async(p, 9, 100, NULL));
  OK(cu.MemcpyDtoH(out, p + 100, 100));
  TRUE(!memcmp(in, out, 100));
  OK(cu.MemcpyDtoH(out, p, 100));
  TRUE(out[0] == 9 && out[99] == 9);
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemcpyAsync(p + 150, p, 100, NULL)); /* past the end */
  OK(cu.MemFree(p));
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemsetD8Async(p, 9, 100, NULL));
}

void case_pointers(void) {
  fc_start();
  static char plain[8192];
  CUdeviceptr d = 0, pool = 0, managed = 0;
  void *host = NULL;
  unsigned type = 99;
  int yes = 9;
  CUcontext c = NULL;
  OK(cu.MemAlloc(&d, 1000));
  OK(cu.MemAllocAsync(&pool, 1000, NULL));
  OK(cu.MemAllocManaged(&managed, 1000, 1));
  OK(cu.MemHostAlloc(&host, 1000, 0));
  OK(cu.MemHostRegister(plain, sizeof plain, 0));
  IS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cu.MemHostRegister(plain + 100, 10, 0));
  OK(cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d + 999));
  IS(CU_MEMORYTYPE_DEVICE, type);
  OK(cu.PointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, d));
  TRUE(c == fc_ctx);
  IS(CUDA_ERROR_INVALID_VALUE, cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d + 1000));
  OK(cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, fc_at(host)));
  IS(CU_MEMORYTYPE_HOST, type);
  OK(cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, fc_at(plain)));
  IS(CU_MEMORYTYPE_HOST, type);
  OK(cu.PointerGetAttribute(&yes, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
  IS(1, yes);
  OK(cu.PointerGetAttribute(&yes, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, d));
  IS(1, yes);
  OK(cu.PointerGetAttribute(&yes, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, pool));
  IS(0, yes);
  int local, ordinal = 7;
  IS(CUDA_ERROR_INVALID_VALUE, cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, fc_at(&local)));
  void *values[] = {&type, &ordinal};
  int which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  OK(cu.PointerGetAttributes(2, which, values, fc_at(&local)));
  TRUE(type == 0 && ordinal == -2);
  CUipcMemHandle h;
  OK(cu.IpcGetMemHandle(&h, d));
  IS(CUDA_ERROR_INVALID_VALUE, cu.IpcGetMemHandle(&h, pool));
  CUmemGenericAllocationHandle g;
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemRetainAllocationHandle(&g, (void *)(uintptr_t)d));
  OK(cu.MemHostUnregister(plain));
  IS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cu.MemHostUnregister(plain));
  IS(CUDA_ERROR_INVALID_VALUE, cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, fc_at(plain)));
  OK(cu.MemFreeHost(host));
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemFreeHost(host));
  OK(cu.MemFreeAsync(pool, NULL));
  OK(cu.StreamSynchronize(NULL));
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemFreeAsync(pool, NULL));
}

static const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                         .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc both = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static CUdeviceptr map(CUmemGenericAllocationHandle h, size_t bytes) {
  CUdeviceptr p = 0;
  OK(cu.MemAddressReserve(&p, bytes, 0, 0, 0));
  OK(cu.MemMap(p, bytes, 0, h, 0));
  OK(cu.MemSetAccess(p, bytes, &both, 1));
  return p;
}

static int status_of(pid_t pid) {
  int st = -1;
  waitpid(pid, &st, 0);
  return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

static void send_fd(int sock, int fd) {
  char byte = 0, room[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec v = {&byte, 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(c), &fd, sizeof fd);
  TRUE(sendmsg(sock, &m, 0) == 1);
}

static int take_fd(int sock) {
  char byte, room[CMSG_SPACE(sizeof(int))];
  struct iovec v = {&byte, 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  int fd = -1;
  if (recvmsg(sock, &m, 0) == 1 && CMSG_FIRSTHDR(&m)) memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
  return fd;
}

static int importer(int sock) {
  fc_start();
  int fd = take_fd(sock), other = open("/dev/null", 0);
  CUmemGenericAllocationHandle h = 0;
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemImportFromShareableHandle(&h, (void *)(intptr_t)other, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  OK(cu.MemImportFromShareableHandle(&h, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(fd);
  CUdeviceptr p = map(h, 2 * MIB);
  IS(41, fc_peek(p));
  OK(cu.MemsetD32Async(p + 4, 42, 1, NULL));
  OK(cu.StreamSynchronize(NULL));
  return fc_bad;
}

void case_vmm(void) {
  int pair[2];
  TRUE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) _exit(importer(pair[1]));
  fc_start();
  size_t unit = 0;
  OK(cu.MemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  IS(2 * MIB, unit);
  CUmemGenericAllocationHandle h = 0, kept = 0;
  CUmemAllocationProp fabric = prop, got;
  fabric.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  IS(CUDA_ERROR_NOT_SUPPORTED, cu.MemCreate(&h, unit, &fabric, 0));
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemCreate(&h, unit + 4096, &prop, 0));
  OK(cu.MemCreate(&h, unit, &prop, 0));
  CUdeviceptr p = map(h, unit), q = 0;
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemMap(p, unit, 0, h, 0)); /* twice */
  OK(cu.MemAddressReserve(&q, 2 * unit, 0, 0, 0));
  OK(cu.MemMap(q + unit, unit, 0, h, 0)); /* a second address for the same memory */
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemSetAccess(q, 2 * unit, &both, 1));
  OK(cu.MemSetAccess(q + unit, unit, &both, 1));
  OK(cu.MemsetD32Async(p, 41, 1, NULL));
  IS(41, fc_peek(q + unit));
  OK(cu.MemRetainAllocationHandle(&kept, (void *)(uintptr_t)(p + 100)));
  TRUE(kept == h);
  OK(cu.MemGetAllocationProperties(&got, h));
  TRUE(got.location.id == 0 && got.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  int fd = -1;
  OK(cu.MemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  send_fd(pair[0], fd);
  close(fd);
  IS(0, status_of(child));
  IS(42, fc_peek(p + 4));
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemAddressFree(p, unit)); /* still mapped */
  OK(cu.MemRelease(kept));
  OK(cu.MemRelease(h));
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemRelease(h));
  IS(41, fc_peek(p)); /* mappings keep the memory */
  OK(cu.MemUnmap(p, unit));
  OK(cu.MemUnmap(q + unit, unit));
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemUnmap(p, unit));
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemsetD32Async(p, 1, 1, NULL));
  OK(cu.MemAddressFree(p, unit));
  OK(cu.MemAddressFree(q, 2 * unit));
  size_t free_bytes, total;
  OK(cu.MemGetInfo(&free_bytes, &total));
  TRUE(free_bytes == total);
}

static int opener(int from, int to) {
  fc_start();
  CUipcMemHandle h;
  CUdeviceptr p = 0, again = 0;
  char byte = 0;
  TRUE(read(from, &h, sizeof h) == sizeof h);
  OK(cu.IpcOpenMemHandle(&p, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  OK(cu.IpcOpenMemHandle(&again, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  TRUE(p == again);
  IS(77, fc_peek(p + 400));
  OK(cu.MemsetD32Async(p, 78, 1, NULL));
  OK(cu.StreamSynchronize(NULL));
  IS(CUDA_ERROR_INVALID_VALUE, cu.MemFree(p)); /* not ours */
  OK(cu.IpcCloseMemHandle(p));
  OK(cu.IpcCloseMemHandle(p));
  IS(CUDA_ERROR_INVALID_VALUE, cu.IpcCloseMemHandle(p));
  TRUE(write(to, &byte, 1) == 1); /* now it is freed there, and the address used again */
  TRUE(read(from, &byte, 1) == 1);
  IS(CUDA_ERROR_INVALID_VALUE, cu.IpcOpenMemHandle(&p, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  return fc_bad;
}

void case_ipc(void) {
  int down[2], up[2];
  TRUE(pipe(down) == 0 && pipe(up) == 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) _exit(opener(down[0], up[1]));
  fc_start();
  CUdeviceptr p = 0, q = 0;
  CUipcMemHandle h;
  char byte = 0;
  OK(cu.MemAlloc(&p, 1000));
  OK(cu.MemsetD32Async(p + 400, 77, 1, NULL));
  OK(cu.StreamSynchronize(NULL));
  OK(cu.IpcGetMemHandle(&h, p + 500));
  IS(CUDA_ERROR_INVALID_CONTEXT, cu.IpcOpenMemHandle(&q, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  TRUE(write(down[1], &h, sizeof h) == sizeof h);
  TRUE(read(up[0], &byte, 1) == 1);
  IS(78, fc_peek(p));
  OK(cu.MemFree(p));
  OK(cu.MemAlloc(&q, 1000));
  TRUE(p == q);
  TRUE(write(down[1], &byte, 1) == 1);
  IS(0, status_of(child));
}

/* A child of a process that had called cuInit has no driver. */
void case_forked(void) {
  fc_start();
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    int n;
    IS(CUDA_ERROR_NOT_INITIALIZED, cu.DeviceGetCount(&n));
    IS(CUDA_ERROR_NOT_INITIALIZED, cu.Init(0));
    _exit(fc_bad);
  }
  IS(0, status_of(child));
}

/* The CPU cannot touch device memory; needs protection keys. */
void case_protected(void) {
  int key = pkey_alloc(0, 0);
  if (key < 0) {
    puts("skip: this machine has no memory protection keys");
    return;
  }
  pkey_free(key);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    CUdeviceptr p = 0;
    fc_start();
    OK(cu.MemAlloc(&p, 4096));
    signal(SIGSEGV, SIG_DFL);
    if (fc_bad) _exit(1);
    *(volatile char *)(uintptr_t)p = 1;
    _exit(0);
  }
  IS(128 + SIGSEGV, status_of(child));
}
