/* The kernels as a fat binary inside the library. */
#ifndef GCCL_CUDA_IMAGE_H
#define GCCL_CUDA_IMAGE_H

#include <stddef.h>

/* Linked when the kernels have been built (make cuda). */
extern const unsigned char gccl_cuda_fatbin[] __attribute__((weak));

/* Set once the driver is a stand-in, which brings its own kernels and reads no image. */
extern int gccl_cuda_standin;

static inline const void *gccl_cuda_image(void) {
  static const unsigned char none[] = ".version none";
  return gccl_cuda_fatbin ? gccl_cuda_fatbin : gccl_cuda_standin ? none : NULL;
}

#endif
