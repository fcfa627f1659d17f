package bootstrap

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Frames travel only on connections whose both ends have proved the secret:
// kind (1 byte), three zero bytes, length of the body (4 bytes, big endian),
// number (8 bytes, big endian), body. The frames of each direction of a link
// are numbered from 1; what belongs to the connection alone has number 0.
const (
	frameHeaderBytes = 16
	// The limits are guesses: a registration carries one hello, a later frame at
	// most the gathered bytes of all ranks.
	maxRegisterBytes = 2 << 20
	maxFrameBytes    = 256 << 20
	// A body is allocated in steps, so that a header alone costs us this much.
	bodyStepBytes = 64 << 10
)

type frameKind byte

const (
	// member to host
	kindRegister frameKind = iota + 1
	kindDecline            // instead of kindRegister
	kindGather
	kindMessage // also host to member
	kindFail
	kindBye
	kindAck
	// host to member
	kindWelcome
	kindProgress
	kindTable
	kindReject
	kindGathered
	kindGatherFailed
	kindPeerFailed
	kindPeerLeft
	kindByeAck
	// of a connection, without number
	kindOpen  // member to host, the first on every connection
	kindTaken // both ways: the last number that has come
	kindEnd
)

type frame struct {
	kind frameKind
	body []byte
}

func frameHeader(f frame, number uint64) []byte {
	h := make([]byte, frameHeaderBytes)
	h[0] = byte(f.kind)
	binary.BigEndian.PutUint32(h[4:], uint32(len(f.body)))
	binary.BigEndian.PutUint64(h[8:], number)
	return h
}

// readFrame reads one frame with a body of at most limit bytes, and its number.
func readFrame(r io.Reader, limit int) (frame, uint64, error) {
	var h [frameHeaderBytes]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return frame{}, 0, err
	}
	kind := frameKind(h[0])
	if kind == 0 || kind >= kindEnd || h[1] != 0 || h[2] != 0 || h[3] != 0 {
		return frame{}, 0, fmt.Errorf("frame header %x is not one of this protocol", h)
	}
	n := int64(binary.BigEndian.Uint32(h[4:]))
	if n > int64(limit) {
		return frame{}, 0, fmt.Errorf("frame of kind %d announces %d bytes, the limit is %d", kind, n, limit)
	}
	var body []byte
	for int64(len(body)) < n {
		step := min(n-int64(len(body)), max(bodyStepBytes, int64(len(body))))
		old := len(body)
		body = append(body, make([]byte, step)...)
		if _, err := io.ReadFull(r, body[old:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return frame{}, 0, err
		}
	}
	return frame{kind: kind, body: body}, binary.BigEndian.Uint64(h[8:]), nil
}
