package netplugin

/*
#include "carry.h"

static int ls_write(np_lane *l, const void *data, uint32_t bytes) {
  l->ops->progress(l);
  char *to = l->ops->room(l);
  if (!to) return gccl_net_faulted(&l->fault) ? -1 : 0;
  memcpy(to, data, bytes);
  l->ops->send(l, bytes, 0);
  return 1;
}

static int ls_left(np_lane *l) {
  l->ops->progress(l);
  return l->ops->idle(l) ? 1 : gccl_net_faulted(&l->fault) ? -1 : 0;
}

static int64_t ls_read(np_lane *l, uint32_t at, void *data, uint32_t bytes, int *rest) {
  uint32_t n;
  l->ops->progress(l);
  const char *f = l->ops->next(l, &n);
  if (!f) return gccl_net_faulted(&l->fault) ? -1 : 0;
  if (bytes > n - at) bytes = n - at;
  memcpy(data, f + at, bytes);
  *rest = at + bytes < n;
  if (!*rest) l->ops->release(l);
  return bytes;
}
*/
import "C"

import (
	stdctx "context"
	"errors"
	"io"
	"unsafe"
)

// laneStream speaks over a lane while a connection is being made: each Write is a frame, and nothing is read ahead.
type laneStream struct {
	ctx  stdctx.Context
	lane *C.np_lane
	at   C.uint32_t // read of the frame that is being read
}

var _ io.ReadWriter = (*laneStream)(nil)

func (s *laneStream) failure() error { return errors.New(C.GoString(&s.lane.fault.text[0])) }

// Write sends b, of 1 to NP_FRAME bytes, and returns when they have left: nobody may look after the lane for a while then.
func (s *laneStream) Write(b []byte) (int, error) {
	err := s.until(func() C.int { return C.ls_write(s.lane, unsafe.Pointer(unsafe.SliceData(b)), C.uint32_t(len(b))) })
	if err == nil {
		err = s.until(func() C.int { return C.ls_left(s.lane) })
	}
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// until repeats a step as long as it gives 0.
func (s *laneStream) until(step func() C.int) error {
	return wait(s.ctx, func() (bool, error) {
		switch rc := step(); {
		case rc < 0:
			return false, s.failure()
		default:
			return rc > 0, nil
		}
	})
}

func (s *laneStream) Read(b []byte) (n int, err error) {
	err = wait(s.ctx, func() (bool, error) {
		var rest C.int
		got := C.ls_read(s.lane, s.at, unsafe.Pointer(unsafe.SliceData(b)), C.uint32_t(len(b)), &rest)
		if got < 0 {
			return false, s.failure()
		}
		if n = int(got); rest != 0 {
			s.at += C.uint32_t(got)
		} else if got > 0 {
			s.at = 0
		}
		return got > 0, nil
	})
	return n, err
}
