//go:build cgo

package param

/*
#include <stdlib.h>
#include <string.h>

extern char **environ;

static int gccl_param_wanted(const char *s) {
  return strncmp(s, "NCCL_", 5) == 0 || strncmp(s, "GCCL_", 5) == 0 || strncmp(s, "HOME=", 5) == 0;
}

// Copies the variables that settings may come from into one block, each with its
// terminating zero; *len is the length of the block. One pass and one call keep
// the time short in which another thread's setenv could interfere.
static char *gccl_param_environ(size_t *len) {
  char *block = NULL;
  size_t used = 0, room = 0;
  *len = 0;
  if (!environ) return NULL;
  for (char **e = environ; *e; e++) {
    if (!gccl_param_wanted(*e)) continue;
    size_t n = strlen(*e) + 1;
    if (used + n > room) {
      size_t want = 2 * room + n + 1024;
      char *more = realloc(block, want);
      if (!more) break;
      block = more;
      room = want;
    }
    memcpy(block + used, *e, n);
    used += n;
  }
  *len = used;
  return block;
}
*/
import "C"

import (
	"strings"
	"unsafe"
)

// environ returns the variables with our prefixes, and HOME, as C sees them now:
// also those that the host program set after this library was loaded.
func environ() []string {
	var n C.size_t
	block := C.gccl_param_environ(&n)
	if block == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(block))
	// The block is small; GoStringN's int is enough for ARG_MAX.
	all := C.GoStringN(block, C.int(n))
	return strings.Split(strings.TrimSuffix(all, "\x00"), "\x00")
}
