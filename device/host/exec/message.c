/* Point-to-point messages: ncclSend and ncclRecv.
 *
 * Every ordered pair of ranks has two mailboxes, one written by the sender and one by the receiver. Both sides post where
 * their buffer is; whoever reaches the other's buffer moves the bytes once, the receiver for preference. Where
 * neither can, pieces pass through the sender's scratch. A sender takes its scratch only when the receiver
 * has posted, so that a message nobody waits for never holds it (messages of a group may complete in any order).
 * The message number of the pair is in every word: a stale word is never mistaken for a new one.
 *
 * To a rank on another host pieces pass through two halves that belong to the pair: they are put into the receiver's mirror of the
 * sender. The scratch of the sender's own area is not needed then.
 */
#include <string.h>

#include "probe.h"
#include "remote.h"

enum { MS_POST, MS_MATCH, MS_MOVE, MS_DRAIN };
enum { POST_INLINE = 24 };

static gccl_post *send_post(const struct ncclComm *c, int from, int to) {
  return (gccl_post *)(c->peers[from].area + c->geo.send_posts) + to;
}

static gccl_post *recv_post(const struct ncclComm *c, int from, int to) {
  return (gccl_post *)(c->peers[to].area + c->geo.recv_posts) + from;
}

static char *half_of(const struct ncclComm *c, int sender, uint64_t piece) {
  return c->peers[sender].area + c->geo.p2p + (piece & 1) * (c->geo.p2p_bytes / 2);
}

/* Where a sender builds a piece for a remote rank: in a part of the mirror where nothing arrives. */
static char *outgoing(const struct ncclComm *c, int receiver, uint64_t piece) {
  return c->peers[receiver].area + c->geo.out + (piece & 1) * (c->geo.p2p_bytes / 2);
}

/* Stores a word of a mailbox of this rank that the other end reads: seq of a post, with all of it, or done. */
static void tell_post(struct ncclComm *c, int peer, int which, gccl_post *p, uint64_t seq) {
  gccl_store(&p->seq, seq); /* acquired in send_step, recv_step */
  gccl_wake(c);
  if (!gccl_is_remote(c, peer)) return;
  gccl_remote_post(c, peer, which, p);
  gccl_port_help(c);
}

static void tell_done(struct ncclComm *c, int peer, gccl_post *p, uint64_t done) {
  gccl_store(&p->done, done);
  gccl_wake(c);
  if (!gccl_is_remote(c, peer)) return;
  gccl_remote_raise(c, peer, GCCL_AT_MIRROR, (uint64_t)((char *)&p->done - c->self.area), done);
  gccl_port_help(c);
}

/* The same with a piece of the pair's half `piece`. from: where it lies, for a rank on another host; a message is not over before that has left. */
static void tell_piece(struct ncclComm *c, int peer, gccl_post *p, uint64_t done, uint64_t piece, const char *from, uint64_t bytes) {
  if (!gccl_is_remote(c, peer)) {
    tell_done(c, peer, p, done);
    return;
  }
  gccl_store(&p->done, done);
  uint64_t off = c->geo.p2p + (piece & 1) * (c->geo.p2p_bytes / 2);
  gccl_remote_put(c, peer, GCCL_AT_MIRROR, 0, off, from, bytes, GCCL_AT_MIRROR, (uint64_t)((char *)&p->done - c->self.area), done, 0);
  gccl_port_help(c);
}

static int reachable(uint8_t kind) { return kind == GCCL_BUF_ARENA || kind == GCCL_BUF_LOCAL; }

static char *address(const struct ncclComm *c, int q, const gccl_post *p) {
  return p->kind == GCCL_BUF_ARENA ? c->peers[q].arena + p->addr : (char *)(uintptr_t)p->addr;
}

/* Unlike a collective's record, a post has one reader: memory of this process is reachable for a peer thread. */
static uint8_t reach_pair(const struct ncclComm *c, int peer, const void *p, uint64_t bytes, uint64_t *addr) {
  if (gccl_is_remote(c, peer)) return GCCL_BUF_STAGED;
  uint8_t kind = gccl_reach(c, p, bytes, addr);
  if (kind == GCCL_BUF_STAGED && c->peers[peer].same_process) return GCCL_BUF_LOCAL;
  return kind;
}

static int disagree(const gccl_op *x, int sender, int receiver, const gccl_post *s, const gccl_post *r) {
  gccl_comm_latch(x->comm, GCCL_RC_USAGE,
                  "rank %d sends %llu bytes (type code %u) and rank %d expects %llu bytes (type code %u) as message %llu of the pair: "
                  "count and type of matching ncclSend and ncclRecv must be equal",
                  sender, (unsigned long long)s->bytes, s->hash, receiver, (unsigned long long)r->bytes, r->hash,
                  (unsigned long long)x->seq);
  return GCCL_RC_USAGE;
}

static void fill(const gccl_op *x, gccl_post *p, uint64_t bytes, const void *buf) {
  uint64_t addr = 0;
  p->bytes = bytes;
  p->hash = x->dtype;
  p->kind = bytes ? reach_pair(x->comm, x->root, buf, bytes, &addr) : GCCL_BUF_LOCAL;
  p->addr = addr;
}

static int send_step(gccl_op *x) {
  struct ncclComm *c = x->comm;
  int me = c->rank, to = x->root;
  gccl_post *s = send_post(c, me, to), *r = recv_post(c, me, to);
  uint64_t bytes = x->count * gccl_dtype_size(x->dtype), k = x->seq, end = (k + 1) << GCCL_STEP_BITS;
  x->blocked_on = to;
  switch (x->phase) {
  case MS_POST:
    if (k > 1 && gccl_load(&r->done) < k << GCCL_STEP_BITS) return GCCL_BLOCKED; /* the last message is still being read */
    fill(x, s, bytes, x->send);
    if (reachable(s->kind) && !gccl_flow_has(x, x->count)) return GCCL_BLOCKED;
    if (bytes <= POST_INLINE && bytes > 0) {
      s->kind = GCCL_BUF_INLINE;
      memcpy(s->pad, x->send, bytes);
    }
    tell_post(c, to, 0, s, k);
    if (s->kind == GCCL_BUF_INLINE) return GCCL_DONE;
    x->phase = reachable(s->kind) ? MS_DRAIN : MS_MATCH;
    x->moved = 1;
    return gccl_message_step(x);
  case MS_MATCH:
    if (gccl_load(&r->seq) < k) return GCCL_BLOCKED;
    if (r->bytes != bytes || r->hash != x->dtype) return disagree(x, me, to, s, r);
    if (reachable(r->kind)) {
      if (!gccl_flow_has(x, x->count)) return GCCL_BLOCKED;
      gccl_copy(c->simd, address(c, to, r), x->send, bytes, 0);
      tell_done(c, to, s, end);
      x->phase = MS_DRAIN;
      return gccl_message_step(x);
    }
    if (!gccl_is_remote(c, to)) {
      if (c->p2p_owner) return GCCL_BLOCKED; /* another message of this rank has the scratch; its receiver is there */
      c->p2p_owner = (uint64_t)to + 1;
    }
    x->phase = MS_MOVE;
    x->done = 0;
    x->moved = 1;
    /* fall through */
  case MS_MOVE: {
    uint64_t half = c->geo.p2p_bytes / 2, n = (bytes + half - 1) / half;
    while (x->done < n) {
      if (x->done >= 2 && gccl_load(&r->done) < (k << GCCL_STEP_BITS | (x->done - 1))) return GCCL_BLOCKED;
      uint64_t off = x->done * half, len = bytes - off < half ? bytes - off : half;
      if (!gccl_flow_has(x, (off + len) / gccl_dtype_size(x->dtype))) return GCCL_BLOCKED;
      const char *from = (const char *)x->send + off;
      if (!gccl_is_remote(c, to) || !c->port->anywhere[to]) {
        char *half = gccl_is_remote(c, to) ? outgoing(c, to, x->done) : half_of(c, me, x->done);
        gccl_copy(c->simd, half, from, len, 0);
        from = half;
      }
      int seen = gccl_probed(c) && gccl_is_remote(c, to);
      if (seen) gccl_probe_piece(x, to, 1, NULL, len);
      x->done++;
      tell_piece(c, to, s, k << GCCL_STEP_BITS | x->done, x->done - 1, from, len);
      if (seen) gccl_probe_pieced(x);
      x->moved = 1;
    }
    x->phase = MS_DRAIN;
  }
    /* fall through */
  default:
    if (gccl_load(&r->done) < end) return GCCL_BLOCKED;
    if (c->p2p_owner == (uint64_t)to + 1) c->p2p_owner = 0;
    return GCCL_DONE;
  }
}

static int recv_step(gccl_op *x) {
  struct ncclComm *c = x->comm;
  int me = c->rank, from = x->root;
  gccl_post *s = send_post(c, from, me), *r = recv_post(c, from, me);
  uint64_t bytes = x->count * gccl_dtype_size(x->dtype), k = x->seq, end = (k + 1) << GCCL_STEP_BITS;
  x->blocked_on = from;
  switch (x->phase) {
  case MS_POST:
    if (k > 1 && gccl_load(&r->done) < k << GCCL_STEP_BITS) return GCCL_BLOCKED; /* this rank's last message of the pair is not done */
    fill(x, r, bytes, x->recv);
    tell_post(c, from, 1, r, k);
    x->phase = MS_MATCH;
    x->done = 0;
    x->moved = 1;
    /* fall through */
  case MS_MATCH:
    if (gccl_load(&s->seq) < k) return GCCL_BLOCKED;
    if (s->bytes != bytes || s->hash != x->dtype) return disagree(x, from, me, s, r);
    if (s->kind == GCCL_BUF_INLINE) {
      memcpy(x->recv, s->pad, bytes);
    } else if (reachable(s->kind)) {
      if (bytes) gccl_copy(c->simd, x->recv, address(c, from, s), bytes, 0);
    } else {
      x->phase = MS_MOVE;
      x->moved = 1;
      return gccl_message_step(x);
    }
    tell_done(c, from, r, end);
    return GCCL_DONE;
  default:
    if (reachable(r->kind)) { /* the sender writes into this rank's buffer */
      if (gccl_load(&s->done) < end) return GCCL_BLOCKED;
    } else {
      uint64_t half = c->geo.p2p_bytes / 2, n = (bytes + half - 1) / half;
      while (x->done < n) {
        uint64_t off = x->done * half, len = bytes - off < half ? bytes - off : half;
        int seen = gccl_probed(c) && gccl_is_remote(c, from);
        if (seen) gccl_probe_piece(x, from, 0, half_of(c, from, x->done), len);
        if (gccl_load(&s->done) < (k << GCCL_STEP_BITS | (x->done + 1))) return GCCL_BLOCKED;
        if (seen) gccl_probe_pieced(x);
        gccl_copy(c->simd, (char *)x->recv + off, half_of(c, from, x->done), len, 0);
        x->done++;
        if (x->flow) x->flow->made(x->flow, c, (off + len) / gccl_dtype_size(x->dtype));
        if (x->done < n) tell_done(c, from, r, k << GCCL_STEP_BITS | x->done);
        x->moved = 1;
      }
    }
    tell_done(c, from, r, end);
    return GCCL_DONE;
  }
}

int gccl_message_step(gccl_op *x) { return x->kind == GCCL_DO_SEND ? send_step(x) : recv_step(x); }
