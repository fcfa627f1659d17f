package shm

/*
#include "conn.h"

// Stores a slot where the next one of the peer is due: kind, key, answer, off, bytes and data are whatever `raw` says.
static void shm_raw(gccl_net_conn *base, const unsigned char *raw) {
  shm_conn *c = (shm_conn *)base;
  shm_slot *s = &c->in->slot[c->read % SHM_SLOTS];
  memcpy((unsigned char *)s + sizeof s->turn, raw, sizeof *s - sizeof s->turn);
  atomic_store_explicit(&s->turn, (uint32_t)(c->read / SHM_SLOTS) + 1, memory_order_release);
}
*/
import "C"

import "unsafe"

// rawSlot is how many bytes of a slot a peer chooses.
const rawSlot = int(unsafe.Sizeof(C.shm_slot{})) - 4

// hear puts a slot of any content where the peer's next one is due; for tests.
func (c *conn) hear(slot [rawSlot]byte) {
	C.shm_raw(c.p, (*C.uchar)(unsafe.Pointer(&slot[0])))
}
