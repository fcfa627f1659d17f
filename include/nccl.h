/* nccl.h: the name under which programs written for NCCL find GCCL's interface. Everything is declared in gccl.h;
 * only the version stands here in full, because build scripts read these lines from this file. */
#ifndef NCCL_H_
#define NCCL_H_

#define NCCL_MAJOR 2
#define NCCL_MINOR 30
#define NCCL_PATCH 7
#define NCCL_SUFFIX ""

#define NCCL_VERSION_CODE 23007
#define NCCL_VERSION(X, Y, Z) \
  (((X) <= 2 && (Y) <= 8) ? (X) * 1000 + (Y) * 100 + (Z) : (X) * 10000 + (Y) * 100 + (Z))

#include "gccl.h"

#endif /* NCCL_H_ */
