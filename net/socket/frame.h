/* What travels on a stream: frames of a fixed head and a payload of known length, both filled up to whole lines: the kernel copies payloads, and
 * on some processors a copy between places that differ in a line costs a fifth more (rep movsb of 32 KiB on an AMD EPYC; docs/network.md).
 *
 * The head is little-endian. Its check word finds lengths that were damaged or misread before they are believed; it is no
 * protection against anybody (docs/network.md). */
#ifndef GCCL_SOCKET_FRAME_H
#define GCCL_SOCKET_FRAME_H

#include "../transport/base.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are little-endian");

#define FRAME_MAGIC 0x4e47u /* "GN" */

enum {
  FRAME_DATA = 1,  /* len bytes for key at off; without a key: of SEND number aux, from its byte off on */
  FRAME_MSG,       /* a message: after is the number of frames before it that it waits for, FRAME_ALL: all */
  FRAME_ASK,       /* a GET: key and off to read from, the payload is frame_ask */
  FRAME_ACK,       /* nothing but ack. From here on frames have no number */
  FRAME_RESET,     /* stream aux is dead: nothing more may be taken from it */
  FRAME_RESET_ACK, /* nothing of stream aux will be taken any more */
  FRAME_BYE,       /* the sender closes; seq: how many frames it has sent; the payload says why, empty if in order */
};

enum {
  FRAME_GOT = 1,         /* flag of DATA: the answer to the oldest open GET */
  FRAME_MAX = 512 << 10, /* payload of DATA */
  FRAME_WINDOW = 1024,   /* frames of a connection that are not acknowledged */
  FRAME_ASKS = 32,       /* GETs of a connection that are not answered */
  FRAME_LINE = 64,
};

#define FRAME_ALL UINT32_MAX

typedef struct {
  uint16_t magic;
  uint8_t kind, flags;
  uint32_t len;
  uint64_t seq; /* number of the frame on its connection, over all streams */
  uint64_t ack; /* all frames of the other direction before this one have arrived */
  uint64_t off;
  uint32_t key, after, aux, check;
  uint64_t none[2];
} frame;

typedef struct {
  uint64_t bytes, off; /* how many, and where in the asker's registration */
  uint32_t key, pad;
} frame_ask;

_Static_assert(sizeof(frame) == FRAME_LINE && sizeof(frame_ask) == 24, "frames have one layout");

/* The room that a payload takes. */
static inline uint64_t frame_room(uint32_t len) { return (len + (uint64_t)FRAME_LINE - 1) & ~((uint64_t)FRAME_LINE - 1); }

/* A mix of all other fields but the filling. */
static inline uint32_t frame_check(const frame *f) {
  uint64_t w[6], h = 0x9e3779b97f4a7c15ull;
  memcpy(w, f, sizeof w);
  w[5] &= 0xffffffffu;
  for (int i = 0; i < 6; i++) h = (h ^ w[i]) * 0xff51afd7ed558ccdull, h ^= h >> 32;
  return (uint32_t)h;
}

/* Whether a head may be believed: NULL, or what is wrong with it. Everything that is not looked at here is checked by whoever uses it. */
static inline const char *frame_wrong(const frame *f) {
  if (f->magic != FRAME_MAGIC) return "something that is no frame";
  if (f->check != frame_check(f)) return "a damaged frame";
  switch (f->kind) {
  case FRAME_DATA: return f->len > FRAME_MAX ? "a frame that is too long" : NULL;
  case FRAME_MSG: return f->len > GCCL_NET_MSG ? "a message that is too long" : NULL;
  case FRAME_ASK: return f->len != sizeof(frame_ask) ? "a request of wrong length" : NULL;
  case FRAME_ACK:
  case FRAME_RESET:
  case FRAME_RESET_ACK: return f->len ? "a control frame with a payload" : NULL;
  case FRAME_BYE: return f->len >= GCCL_NET_TEXT ? "a reason that is too long" : NULL;
  }
  return "a frame of unknown kind";
}

static inline int frame_numbered(const frame *f) { return f->kind <= FRAME_ASK; }

#endif
