/* fc.h: the frame of the checks of device/fake: the driver's table, and one line for each thing that is not as it should be. */
#ifndef FC_H
#define FC_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../device/fake/fake.h"

/* The functions of the opened driver. */
typedef struct {
#define FC_MEMBER(member, symbol, parameters) CUresult(*member) parameters;
  GCCL_CUDA_FUNCTIONS(FC_MEMBER) GCCL_CUDA_OPTIONAL(FC_MEMBER) FAKE_EXTRA(FC_MEMBER)
#undef FC_MEMBER
} fc_driver;
extern fc_driver cu;
extern CUcontext fc_ctx; /* current in main's thread */
extern int fc_bad;

int fc_fail(const char *file, int line, const char *text, long want, long got);
#define IS(want, call)                                                        \
  do {                                                                        \
    long got_ = (long)(call);                                                 \
    if (got_ != (long)(want)) fc_fail(__FILE__, __LINE__, #call, want, got_); \
  } while (0)
#define OK(call) IS(CUDA_SUCCESS, call)
#define TRUE(cond) IS(1, (cond) != 0)

void fc_start(void); /* cuInit, the primary context of device 0 */
CUfunction fc_function(const char *name);
CUstream fc_stream(void);                               /* non-blocking */
_Atomic uint32_t *fc_words(void);                       /* a page of pinned words, all 0 */
uint32_t fc_peek(CUdeviceptr at);                       /* a word of device memory; waits for the legacy stream */
int fc_becomes(_Atomic uint32_t *word, uint32_t value); /* polls for at most ten seconds */
int fc_stays(_Atomic uint32_t *word, uint32_t value);   /* polls for a moment: what is forbidden has not happened yet */

void case_devices(void);
void case_contexts(void);
void case_memory(void);
void case_pointers(void);
void case_vmm(void);
void case_ipc(void);
void case_streams(void);
void case_events(void);
void case_memops(void);
void case_queues(void);
void case_blocking(void);
void case_kernels(void);
void case_room(void);
void case_sticky(void);
void case_capture(void);
void case_broken(void);
void case_graphs(void);
void case_branches(void);
void case_script(void);
void case_forked(void);
void case_protected(void);

static inline CUdeviceptr fc_at(const volatile void *p) { return (CUdeviceptr)(uintptr_t)p; }

#endif
