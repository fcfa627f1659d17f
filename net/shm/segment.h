/* What two processes share: one segment a connection, a stream of slots in each direction.
 *
 * Every word has one writer. The peer proved the secret, but what it writes is still checked before it is used: fields are
 * copied out of the segment first. */
#ifndef GCCL_SHM_SEGMENT_H
#define GCCL_SHM_SEGMENT_H

#include "../transport/base.h"

#define SHM_MAGIC 0x4d53434755ull /* "UGCSM": changes with this layout */

enum {
  SHM_SLOTS = 256,
  SHM_DATA = 512 << 10, /* bytes of a direction that are on their way */
  SHM_CHUNK = 32 << 10, /* of a large transfer: fits the first-level caches of both sides, 16 of them overlap */
  SHM_INLINE = 96,      /* of a slot */
};

enum { SHM_PUT = 1, SHM_MSG, SHM_ASK, SHM_GOT };

/* turn is 1 + the number of the lap and is stored last (release; acquired in receive). bytes beyond SHM_INLINE are in data. */
typedef struct {
  _Atomic uint32_t turn;
  uint8_t kind, pad[3];
  uint32_t key;    /* of the receiver's registration */
  uint32_t answer; /* SHM_ASK: key of the asker's registration */
  uint64_t off, bytes;
  union {
    unsigned char data[SHM_INLINE];
    uint64_t answer_off; /* SHM_ASK */
  } u;
} shm_slot;

typedef struct {
  _Alignas(128) _Atomic uint64_t taken; /* receiver: slots that may be written again */
  _Atomic uint64_t taken_bytes;         /* receiver: bytes of data that may be */
  _Atomic uint32_t asleep;              /* receiver: it is in wait, write a byte to its socket */
  _Alignas(128) shm_slot slot[SHM_SLOTS];
  _Alignas(4096) unsigned char data[SHM_DATA];
} shm_way;

/* closed: 1 in order, 2 with a text. */
typedef struct {
  uint64_t magic;
  _Atomic uint64_t proof[2];
  _Atomic uint32_t closed[2];
  char text[2][GCCL_NET_TEXT];
  shm_way way[2]; /* by receiving side */
} shm_segment;

_Static_assert(sizeof(shm_slot) == 128, "a slot is two lines");

#endif
