package gin

import "encoding/binary"

// maxParts and maxPart bound what a peer may say during creation (guesses, far above real values).
const (
	maxParts = 1 << 17
	maxPart  = 1 << 20
)

// pack joins byte strings; unpack takes them apart again, or gives nil if they are malformed or not n.
func pack(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}

func unpack(b []byte, n int) [][]byte {
	if n > maxParts {
		return nil
	}
	out := make([][]byte, 0, n)
	for len(b) >= 4 {
		size := binary.BigEndian.Uint32(b)
		b = b[4:]
		if size > maxPart || int(size) > len(b) || len(out) == n {
			return nil
		}
		out = append(out, b[:size:size])
		b = b[size:]
	}
	if len(b) != 0 || len(out) != n {
		return nil
	}
	return out
}
