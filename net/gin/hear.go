package gin

/*
#include "gin.h"

// Returns what was wrong with it, or NULL.
static const char *g_hear(gin *g, int32_t rank, const unsigned char *message, uint32_t bytes) {
  gin_peer *p = &g->peer[rank];
  if (bytes >= sizeof(gccl_msg_head)) gin_agent(g, p, message, bytes); // shorter ones end in core.c
  if (!p->faulted) return NULL;
  p->faulted = 0;
  return p->fault;
}
*/
import "C"

import "unsafe"

// Hear gives the agent a message as if a rank had sent it, and returns what was wrong with it; the connection goes on. For tests.
func (g *Gin) Hear(rank int, message []byte) (why string) {
	if len(message) == 0 {
		return "nothing"
	}
	g.with(func() {
		if text := C.g_hear(g.p, C.int32_t(rank), (*C.uchar)(unsafe.Pointer(&message[0])), C.uint32_t(len(message))); text != nil {
			why = C.GoString(text)
		}
	})
	return why
}
