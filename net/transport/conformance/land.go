package conformance

/*
#include <stdlib.h>
#include "../transport.h"

typedef struct {
  unsigned char *at;
  uint64_t each;
  uint32_t places;
  _Atomic uint32_t there;
} landing;

static unsigned char *land(void *user, uint32_t number, uint64_t off, uint64_t bytes) {
  landing *l = user;
  if (number >= l->places || !gccl_net_within(l->each, off, bytes)) return GCCL_NET_NOWHERE;
  if (number >= atomic_load(&l->there)) return NULL;
  return l->at + number * l->each + off;
}

static landing *landing_new(gccl_net_conn *c, void *at, uint64_t each, uint32_t places, uint32_t there) {
  landing *l = malloc(sizeof *l);
  *l = (landing){at, each, places, there};
  c->land = land;
  c->user = l;
  return l;
}
static void landing_open(landing *l, uint32_t there) { atomic_store(&l->there, there); }
*/
import "C"

import "unsafe"

// Landing is where SENDs of a connection go: number n to place n.
type Landing struct{ p *C.landing }

// Land divides memory into places for a connection, the first of which are there.
func Land(conn unsafe.Pointer, at uintptr, bytes, places, there int) Landing {
	return Landing{C.landing_new((*C.gccl_net_conn)(conn), *(*unsafe.Pointer)(unsafe.Pointer(&at)), C.uint64_t(bytes/places), C.uint32_t(places), C.uint32_t(there))}
}

// Open says how many of the places are there now.
func (l Landing) Open(there int) { C.landing_open(l.p, C.uint32_t(there)) }

// Free ends it; nothing may arrive any more.
func (l Landing) Free() { C.free(unsafe.Pointer(l.p)) }
