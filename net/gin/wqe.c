#include "wqe.h"

static uint32_t be32_at(const unsigned char *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }
static uint64_t be64_at(const unsigned char *p) { return (uint64_t)be32_at(p) << 32 | be32_at(p + 4); }
static void put_be32(unsigned char *p, uint32_t v) {
  v = gccl_be32(v);
  memcpy(p, &v, sizeof v);
}

#define WRONG(...) return (void)gccl_net_why(why, 0, __VA_ARGS__), 0

/* The data segment, or inline data, of `segments` segments that are left. */
static int read_data(const unsigned char *seg, uint32_t segments, wqe *e, char *why) {
  if (segments == 0) {
    if (e->opcode == GCCL_WQE_FETCH_ADD) WRONG("an atomic has no data segment for the old value");
    return 1; /* 0 bytes */
  }
  uint32_t count = be32_at(seg);
  if (count & GCCL_WQE_INLINE) {
    e->inlined = 1;
    e->bytes = count & ~GCCL_WQE_INLINE;
    if (e->opcode != GCCL_WQE_WRITE) WRONG("inline data in an entry that is no write");
    if (e->bytes == 0) WRONG("inline data of 0 bytes");
    if (e->bytes > GCCL_WQE_INLINE_MAX) WRONG("%u bytes of inline data, where a block holds %d", e->bytes, GCCL_WQE_INLINE_MAX);
    if (segments != (4 + e->bytes + 15) / 16) WRONG("ds leaves %u segments for %u bytes of inline data", segments, e->bytes);
    memcpy(e->data, seg + 4, e->bytes);
    return 1;
  }
  if (segments != 1) WRONG("%u data segments, where one is expected", segments);
  e->bytes = count;
  e->lkey = be32_at(seg + 4);
  e->laddr = be64_at(seg + 8);
  if (count == 0) WRONG("a data segment of 0 bytes, which means 2^31: leave it out");
  if (e->opcode == GCCL_WQE_FETCH_ADD && count != 8) WRONG("an atomic of %u bytes, not 8", count);
  return 1;
}

int wqe_read(const unsigned char b[GCCL_WQE_BYTES], uint32_t qpn, uint32_t index, wqe *e, char *why) {
  memset(e, 0, sizeof *e);
  uint32_t head = be32_at(b), qpn_ds = be32_at(b + 4), ds = qpn_ds & 0x3f;
  uint8_t flags = b[11];
  e->opcode = (uint8_t)head;
  switch (e->opcode) {
  case GCCL_WQE_NOP:
  case GCCL_WQE_WRITE:
  case GCCL_WQE_READ:
  case GCCL_WQE_FETCH_ADD: break;
  default: WRONG("opcode 0x%02x is not one of nop, write, read, fetch-add", e->opcode);
  }
  if (head >> 24) WRONG("opcode modifier 0x%02x, not 0", head >> 24);
  if ((head >> 8 & 0xffff) != (index & 0xffff)) WRONG("index %u where entry %u is due", head >> 8 & 0xffff, index & 0xffff);
  if (qpn_ds >> 8 != qpn) WRONG("queue pair 0x%x in a queue of 0x%x", qpn_ds >> 8, qpn);
  if (qpn_ds & 0xc0) WRONG("reserved bits 0x%02x beside ds", qpn_ds & 0xc0);
  if (ds > GCCL_WQE_BYTES / 16) WRONG("ds %u, where a block has 4 segments", ds);
  if (b[8]) WRONG("signature 0x%02x in a queue without signatures", b[8]);
  if (b[9] | b[10]) WRONG("reserved bytes 0x%02x%02x in the control segment", b[9], b[10]);
  if (flags & ~(GCCL_WQE_CQ_UPDATE | GCCL_WQE_SOLICITED | GCCL_WQE_FENCE | GCCL_WQE_SMALL_FENCE))
    WRONG("unknown bits in fm_ce_se 0x%02x", flags);
  if ((flags & (GCCL_WQE_FENCE | GCCL_WQE_SMALL_FENCE)) == (GCCL_WQE_FENCE | GCCL_WQE_SMALL_FENCE))
    WRONG("two fences in fm_ce_se 0x%02x", flags);
  if (be32_at(b + 12)) WRONG("immediate 0x%08x in an operation without one", be32_at(b + 12));
  e->signaled = (flags & GCCL_WQE_CQ_UPDATE) != 0;
  e->fence = (flags & (GCCL_WQE_FENCE | GCCL_WQE_SMALL_FENCE)) != 0;
  uint32_t fixed = e->opcode == GCCL_WQE_NOP ? 1 : e->opcode == GCCL_WQE_FETCH_ADD ? 3 : 2;
  if (ds < fixed || (e->opcode == GCCL_WQE_NOP && ds != 1)) WRONG("ds %u for opcode 0x%02x", ds, e->opcode);
  if (e->opcode == GCCL_WQE_NOP) return 1;
  e->raddr = be64_at(b + 16);
  e->rkey = be32_at(b + 24);
  if (be32_at(b + 28)) WRONG("reserved word 0x%08x in the remote address segment", be32_at(b + 28));
  if (e->opcode == GCCL_WQE_FETCH_ADD) {
    e->add = be64_at(b + 32);
    if (be64_at(b + 40)) WRONG("a compare value in a fetch-add");
    if (e->raddr % 8) WRONG("an atomic at address 0x%llx, which is not a multiple of 8", (unsigned long long)e->raddr);
  }
  return read_data(b + 16 * fixed, ds - fixed, e, why);
}

void cqe_write(unsigned char *at, uint64_t n, uint32_t entries, const cqe *c) {
  unsigned char last[8];
  uint64_t word;
  memset(at, 0, 56);
  put_be32(at + GCCL_CQE_COUNT, c->bytes);
  at[GCCL_CQE_SYNDROME] = c->syndrome; /* in a good completion the last byte of the time stamp, which is 0 */
  put_be32(last, (uint32_t)c->opcode << 24 | (c->qpn & 0xffffff));
  last[4] = (unsigned char)(c->index >> 8);
  last[5] = (unsigned char)c->index;
  last[6] = 0;
  last[7] = (unsigned char)((c->syndrome ? GCCL_CQE_ERROR : GCCL_CQE_OK) << 4 | ((n & entries) != 0));
  memcpy(&word, last, sizeof word);
  __atomic_store_n((uint64_t *)(at + GCCL_CQE_QPN), word, __ATOMIC_RELEASE); /* acquired by whoever polls op_own */
}

int cqe_read(const unsigned char at[GCCL_CQE_BYTES], cqe *c, char *why) {
  uint8_t opcode = at[GCCL_CQE_OP_OWN] >> 4;
  uint32_t sop = be32_at(at + GCCL_CQE_QPN);
  memset(c, 0, sizeof *c);
  if (opcode == GCCL_CQE_INVALID) WRONG("the device has not written it");
  if (opcode != GCCL_CQE_OK && opcode != GCCL_CQE_ERROR) WRONG("opcode %u is no completion of a request", opcode);
  if (at[GCCL_CQE_OP_OWN] & 0x0c) WRONG("a completion with inline data or compressed: format %u", at[GCCL_CQE_OP_OWN] >> 2 & 3);
  if (at[GCCL_CQE_SIGNATURE]) WRONG("signature 0x%02x in a queue without signatures", at[GCCL_CQE_SIGNATURE]);
  c->opcode = (uint8_t)(sop >> 24);
  c->qpn = sop & 0xffffff;
  c->index = (uint32_t)at[GCCL_CQE_COUNTER] << 8 | at[GCCL_CQE_COUNTER + 1];
  c->bytes = opcode == GCCL_CQE_OK ? be32_at(at + GCCL_CQE_COUNT) : 0;
  c->syndrome = opcode == GCCL_CQE_ERROR ? at[GCCL_CQE_SYNDROME] : 0;
  if (opcode == GCCL_CQE_ERROR && !c->syndrome) WRONG("an error without a syndrome");
  return 1;
}

const char *wqe_syndrome(uint8_t s) {
  switch (s) {
  case GCCL_SYNDROME_LENGTH: return "local length error";
  case GCCL_SYNDROME_QP_OP: return "the entry makes no sense";
  case GCCL_SYNDROME_LOCAL_PROT: return "local key or range";
  case GCCL_SYNDROME_FLUSH: return "an earlier entry has failed";
  case GCCL_SYNDROME_REMOTE_INVAL: return "the peer refuses the request";
  case GCCL_SYNDROME_REMOTE_ACCESS: return "remote key or range";
  case GCCL_SYNDROME_REMOTE_OP: return "the peer failed";
  case GCCL_SYNDROME_RETRY: return "the peer did not answer";
  case GCCL_SYNDROME_RNR: return "the peer was not ready";
  default: return "unknown syndrome";
  }
}
