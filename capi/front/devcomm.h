/* devcomm.h: device communicators inside the front: what a caller of any header version asked for, in this version's form, and what comes of
 * it. */
#ifndef GCCL_FRONT_DEVCOMM_H
#define GCCL_FRONT_DEVCOMM_H

#pragma GCC visibility push(default)
#include "../../include/gccl_device.h"
#pragma GCC visibility pop
#undef ncclDevCommCreate /* the plain symbol is made here too */

#include "front.h"

/* The forms of ncclDevComm, by the first version that has each. */
enum gccl_devcomm_form { GCCL_FORM_22803, GCCL_FORM_22807, GCCL_FORM_22902, GCCL_FORM_22907, GCCL_FORM_23003, GCCL_FORM_23007 };

enum { GCCL_DEVCOMM_OUTPUTS = 64 };

/* Room for a copy of the structure, of any form, where kernels read it: the resource buffer begins with it. */
enum { GCCL_DEVCOMM_COPY = 256 };

/* What GIN barriers of 2.28.7 to 2.29.3 have in the resource buffer: rounds, 32 bits for each of four contexts. */
enum { GCCL_GIN_OLD_EPOCHS = 16 };

/* A device communicator on its way, in one block of malloc. Offsets and handles are known when the call is made, addresses later. */
typedef struct {
  struct ncclComm *comm;
  void *out; /* the caller's ncclDevComm, of this form */
  enum gccl_devcomm_form form;
  unsigned stamp; /* 0: a caller with NVIDIA's header */
  gccl_window *window;
  uint64_t bytes;         /* of the resource buffer so far */
  uint64_t own_at;        /* where in it the gcclDevComm_own is */
  struct ncclDevComm dev; /* as this version has it */
  gccl_devgin gin;
  uint32_t signals, counters; /* numbers given out so far; the caller's own come first */
  uint32_t direct;            /* handle of gccl_gin_direct, and of what it points to: */
  uint32_t direct_signals, direct_counters, direct_offsets, shadows;
  /* 32-bit results of the caller's lists: handles, first signals, first counters. */
  struct {
    uint32_t *at, value;
  } output[3 * GCCL_DEVCOMM_OUTPUTS];
  int noutputs;
} gccl_devcomm;

/* devcomm_forms.c: reading and writing the versions' structures. */

/* Copies reqs over the defaults. The caller's version says which form its other structures have. call names the call for the error text. */
ncclResult_t gccl_devcomm_read(struct ncclDevCommRequirements *to, enum gccl_devcomm_form *form, const void *reqs, const char *call);
/* Copies one element of a list of resource requirements. */
void gccl_devcomm_read_resource(ncclDevResourceRequirements_t *to, const void *from, enum gccl_devcomm_form form);
/* Writes dev, whose resource window is w, to out. */
void gccl_devcomm_write(void *out, enum gccl_devcomm_form form, const struct ncclDevComm *dev, const struct ncclWindow_vidmem *w);
/* The resource window in a device communicator of any form. */
const void *gccl_devcomm_window(const void *dev);
/* The form of structures without a version: what GCCL_DEVICE_HEADER says of callers with headers before 2.29. */
enum gccl_devcomm_form gccl_devcomm_unversioned(void);

/* devapi.c; the header declares only the names without p. */
ncclResult_t pncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t *outHandle,
                                              ncclDevResourceRequirements_t *outReq);

/* devcomm.c */

/* Stores into this rank's resource buffer, at offset at. */
ncclResult_t gccl_devcomm_put(const gccl_devcomm *d, uint64_t at, const void *from, size_t n);
/* Takes bytes of the resource buffer; returns their handle. */
uint32_t gccl_devcomm_take(gccl_devcomm *d, uint64_t bytes, uint64_t align);

/* devgin.c: what GIN adds. plan refuses with the name of the field, or fills d->dev; take gives out n numbers of d->signals or d->counters, or
 * refuses; room takes room in the resource buffer when all are given out; complete fills in what has an address. */
ncclResult_t gccl_devgin_plan(gccl_devcomm *d, const struct ncclDevCommRequirements *r, const char *call);
ncclResult_t gccl_devgin_take(gccl_devcomm *d, uint32_t *numbers, int n, const char *field, uint32_t *first, const char *call);
void gccl_devgin_room(gccl_devcomm *d);
ncclResult_t gccl_devgin_complete(gccl_devcomm *d, char *resources, struct gcclDevComm_own *own);

#endif
