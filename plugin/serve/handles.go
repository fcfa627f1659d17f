package main

// #include <stdlib.h>
import "C"

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime/cgo"
	"unsafe"

	"github.com/gccl/gccl/net/transport"
)

// pack gives C a pointer to a cell with the handle of a Go object; release frees both.
func pack(m *making) unsafe.Pointer {
	p := C.malloc(8)
	*(*uintptr)(p) = uintptr(cgo.NewHandle(m))
	return p
}

func unpack(p unsafe.Pointer) *making { return cgo.Handle(*(*uintptr)(p)).Value().(*making) }

func release(p unsafe.Pointer) {
	cgo.Handle(*(*uintptr)(p)).Delete()
	C.free(p)
}

// swap sends bytes and receives those of the other end, each behind its length.
func swap(s io.ReadWriter, mine []byte) ([]byte, error) {
	if _, err := s.Write(append(binary.LittleEndian.AppendUint16(nil, uint16(len(mine))), mine...)); err != nil {
		return nil, err
	}
	var n [2]byte
	if _, err := io.ReadFull(s, n[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.LittleEndian.Uint16(n[:]))
	if len(b) > transport.MaxBlob {
		return nil, fmt.Errorf("%d bytes that are no name of a connection", len(b))
	}
	_, err := io.ReadFull(s, b)
	return b, err
}
