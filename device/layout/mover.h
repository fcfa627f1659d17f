/* The mover of a GIN object: what net/gin asks of a device whose memory the CPU cannot touch. device/cuda offers it; on the host there is none.
 *
 * Memory: pinned memory has one address for kernels and the CPU, and both may look at it without a call; device memory is for kernels, and
 * the CPU stores into it by a call. Addresses of windows are device addresses, of this rank's part and of its peers' alike.
 *
 * The data path (begin to trouble) belongs to whoever serves the object, one thread at a time, and never waits for a kernel: copies go
 * through pinned memory unless the user wants otherwise, because copies on the device need a multiprocessor, which a kernel that waits for us may hold. What was taken is done
 * in the order of the calls. What was taken between begin and end is behind one mark: it has taken effect, for kernels and for copies of anybody,
 * when *done has come to marks as it was after end (wrap-safe).
 */
#ifndef GCCL_LAYOUT_MOVER_H
#define GCCL_LAYOUT_MOVER_H

#include <stdint.h>

struct ncclComm;
typedef struct gccl_mover gccl_mover;

enum { GCCL_MOVER_TEXT = 256, GCCL_MOVER_VALUE = 64 };

typedef struct gccl_mover_ops {
  /* on_device: copies may need multiprocessors. NULL with a text of at most GCCL_MOVER_TEXT bytes, as all texts here. */
  gccl_mover *(*open)(struct ncclComm *, int on_device, char *text);
  void (*close)(gccl_mover *); /* waits for what was taken, but not for ever; then its memory stays */

  /* Any thread. */
  void *(*pinned)(gccl_mover *, uint64_t bytes); /* zeros, at the beginning of two lines; NULL: there is none */
  void (*unpin)(gccl_mover *, void *);           /* for the next one who asks; never back to the driver, which would wait for kernels */
  void *(*memory)(gccl_mover *, uint64_t bytes, char *text); /* zeros, on the device */
  void (*release)(gccl_mover *, void *);
  int (*store)(gccl_mover *, void *to, const void *from, uint64_t bytes, char *text); /* waits until it is there. 0, or a text */

  void (*adopt)(gccl_mover *); /* by a thread that does nothing else: what calls need of their thread is set up once */
  void (*begin)(gccl_mover *);
  uint64_t (*copy)(gccl_mover *, uint64_t to, uint64_t from, uint64_t bytes); /* returns how many bytes it has taken: the first ones */
  int (*bounce)(gccl_mover *, uint64_t to, uint64_t from,
                uint64_t bytes); /* one of both is pinned memory of ours; all of it, or 0: not now */
  int (*value)(gccl_mover *, uint64_t to, const void *from, uint32_t bytes); /* up to GCCL_MOVER_VALUE, copied from. 0: not now */
  const uint64_t *(*fetch)(gccl_mover *, uint64_t from);                     /* a word, for the CPU, until the next fetch. NULL: not now */
  void (*end)(gccl_mover *);
  const char *(*trouble)(gccl_mover *); /* why nothing comes any more; NULL: it may still come. Asks the driver */
} gccl_mover_ops;

struct gccl_mover {
  const gccl_mover_ops *ops;
  const uint32_t *done; /* stored by the device */
  uint32_t marks;
};

static inline int gccl_mover_reached(const gccl_mover *m, uint32_t mark) {
  return (int32_t)(__atomic_load_n(m->done, __ATOMIC_ACQUIRE) - mark) >= 0; /* acquire: what a fetch has brought */
}

#endif
