package gin_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/gccl/gccl/net/gin"
	"github.com/gccl/gccl/net/loop"
)

// message is one of device/layout/port.h: head, then words.
func message(kind, place, op byte, words ...uint64) []byte {
	b := []byte{kind, place, op, 0, 0, 0, 0, 0}
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// Whatever a peer says, memory outside of windows, areas and contexts stays as it is, and a message that makes no sense is named.
func FuzzAgent(f *testing.F) {
	for place := range byte(6) {
		f.Add(message(1, place, 1, 8, 1, window))
		f.Add(message(1, place, 0, 1<<63, 1, 0))
		f.Add(message(1, place, 1, winBytes-4, 1, window))
		f.Add(message(1, place, 9, 0, 1, window|1<<32))
	}
	f.Add(message(2, 0, 0, 5, 77, 1, 0, 0, 0, 0))
	f.Add(message(3, 0, 0, 5, 77, 1, 0, 0, 0))
	f.Add(message(4, 4, 0, 8, 1, window, 0, 0))
	f.Add(message(5, 4, 0, 8, 1, window, 0, 0))
	r := newRig(f, loop.Transport{}, gin.Format128, 2, 4)
	f.Fuzz(func(t *testing.T, m []byte) {
		before := bytes.Clone(r.win[1].Bytes())
		if len(m) > 64 {
			m = m[:65]
		}
		why := r.gins[0].Hear(1, m)
		if len(m) >= 8 && (m[0] == 0 || m[0] >= 64) && why == "" {
			t.Errorf("% x means nothing and was taken", m)
		}
		if !bytes.Equal(before, r.win[1].Bytes()) {
			t.Errorf("% x changed another rank's window", m)
		}
		if err := r.gins[0].Err(); err != nil {
			t.Errorf("% x: %v", m, err)
		}
	})
}
