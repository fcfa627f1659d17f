/* What the driver says about a pointer. */
#include "memory.h"

static CUresult attribute(void *value, int a, CUdeviceptr p, const fake_range *r) {
  switch (a) {
  case CU_POINTER_ATTRIBUTE_CONTEXT:
    if (r->kind == MEM_VMM) return CUDA_ERROR_INVALID_VALUE; /* belongs to no context */
    *(CUcontext *)value = r->ctx;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(unsigned *)value = fake_is_device(r->kind) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)value = p; return CUDA_SUCCESS;
  case 4: /* host pointer */
    if (fake_is_device(r->kind) && r->kind != MEM_MANAGED) return CUDA_ERROR_INVALID_VALUE;
    *(void **)value = (void *)(uintptr_t)p;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(unsigned long long *)value = r->id; return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(int *)value = r->kind == MEM_MANAGED; return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = r->device; return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: *(int *)value = r->kind == MEM_DEVICE; return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)value = (CUdeviceptr)(uintptr_t)r->base; return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)value = r->bytes; return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_MAPPED: *(int *)value = 1; return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    *(unsigned long long *)value = r->kind == MEM_VMM ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(void **)value = r->kind == MEM_POOL ? (void *)r->ctx : NULL; return CUDA_SUCCESS;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
}

/* Memory that the driver does not know is an error here … */
CUresult fake_PointerGetAttribute(void *value, int a, CUdeviceptr p) {
  CUresult rc = fake_enter("cuPointerGetAttribute", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  fake_range *r = fake_range_of(p);
  rc = r ? attribute(value, a, p, r) : CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

static size_t width(int a) {
  switch (a) {
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
  case CU_POINTER_ATTRIBUTE_MAPPED: return 4;
  default: return 8;
  }
}

/* … and zeros, with success, here; the ordinal is -2 then (cuPointerGetAttributes). */
CUresult fake_PointerGetAttributes(unsigned n, int *attributes, void **values, CUdeviceptr p) {
  CUresult rc = fake_enter("cuPointerGetAttributes", IN_CONTEXT, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (!attributes || !values) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  fake_range *r = fake_range_of(p);
  for (unsigned i = 0; i < n && rc == CUDA_SUCCESS; i++) {
    if (attributes[i] < 1 || attributes[i] > 21) rc = CUDA_ERROR_INVALID_VALUE;
    if (rc != CUDA_SUCCESS) break;
    memset(values[i], 0, width(attributes[i]));
    if (r)
      attribute(values[i], attributes[i], p, r);
    else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
      *(int *)values[i] = -2;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}
