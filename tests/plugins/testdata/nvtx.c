/* A tool for NVTX: writes every range of the domain that the library makes to the file GCCL_TEST_NVTX, a line each. With NVIDIA's header it
 * checks what it knows of the interface; without, that is from nvidia-nvtx-cu12 12.9.79, as in capi/front/nvtx.c. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const char *message;
} attributes;

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
_Static_assert(sizeof(attributes) == sizeof(nvtxEventAttributes_t), "");
_Static_assert(offsetof(attributes, payload) == offsetof(nvtxEventAttributes_t, payload), "");
_Static_assert(offsetof(attributes, message_type) == offsetof(nvtxEventAttributes_t, messageType), "");
_Static_assert(offsetof(attributes, message) == offsetof(nvtxEventAttributes_t, message), "");
_Static_assert(NVTX_CB_MODULE_CORE2 == 5 && NVTX_CBID_CORE2_SIZE == 16 && NVTX_CBID_CORE2_DomainCreateA == 12, "");
_Static_assert(NVTX_CBID_CORE2_DomainRangePushEx == 4 && NVTX_CBID_CORE2_DomainRangePop == 5, "");
_Static_assert(NVTX_ETID_CALLBACKS == 1 && NVTX_ETID_VERSIONINFO == 3 && NVTX_VERSION == 3, "");
_Static_assert(NVTX_CBID_CUDA_SIZE == 9 && NVTX_CBID_OPENCL_SIZE == 15 && NVTX_CBID_CUDART_SIZE == 7 && NVTX_CBID_SYNC_SIZE == 7, "");
_Static_assert(NVTX_MESSAGE_TYPE_ASCII == 1 && NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 == 1 && NVTX_CBID_CORE_SIZE == 16, "");
#endif

static FILE *out;
static int made; /* the domain's address */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int depth;

static void *domain(const char *name) {
  fprintf(out, "domain %s\n", name);
  return &made;
}

static int push(void *d, const attributes *a) {
  pthread_mutex_lock(&lock);
  fprintf(out, "%d %s", depth, a->message_type == 1 ? a->message : "?");
  if (a->payload_type == 1) fprintf(out, " %llu", (unsigned long long)a->payload);
  if (d != &made || a->version != 3 || a->size != sizeof *a) fprintf(out, " wrong");
  fprintf(out, "\n");
  fflush(out);
  pthread_mutex_unlock(&lock);
  return depth++;
}

static int pop(void *d) {
  pthread_mutex_lock(&lock);
  if (d != &made || depth == 0) fprintf(out, "wrong pop\n");
  fprintf(out, "%d end\n", --depth);
  fflush(out);
  pthread_mutex_unlock(&lock);
  return depth;
}

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t)) {
  const struct {
    size_t size;
    int (*get_module)(int, void ***, unsigned *);
  } *callbacks = get_table(1);
  const struct {
    size_t size;
    uint32_t version, reserved;
    void (*set_version)(uint32_t);
  } *version = get_table(3);
  void **table;
  unsigned size;
  if (!(out = fopen(getenv("GCCL_TEST_NVTX"), "a"))) return 0;
  if (version->version != 3 || callbacks->size < sizeof *callbacks || !callbacks->get_module(1, &table, &size) || size != 16) return 0;
  version->set_version(3);
  if (callbacks->get_module(99, &table, &size) || !callbacks->get_module(5, &table, &size) || size != 16) return 0;
  *(void **)table[12] = (void *)domain;
  *(void **)table[4] = (void *)push;
  *(void **)table[5] = (void *)pop;
  return 1;
}
