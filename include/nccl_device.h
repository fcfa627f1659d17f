/* nccl_device.h: the name under which programs written for NCCL find gccl_device.h. */
#ifndef NCCL_DEVICE_H_
#define NCCL_DEVICE_H_

#include "gccl_device.h"

#endif /* NCCL_DEVICE_H_ */
