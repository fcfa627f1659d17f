package bootstrap

import "encoding/binary"

// encoder appends big-endian fields to a message body.
type encoder struct{ b []byte }

func (e *encoder) u8(v byte)    { e.b = append(e.b, v) }
func (e *encoder) u32(v uint32) { e.b = binary.BigEndian.AppendUint32(e.b, v) }
func (e *encoder) u64(v uint64) { e.b = binary.BigEndian.AppendUint64(e.b, v) }

func (e *encoder) bytes(v []byte) {
	e.u32(uint32(len(v)))
	e.b = append(e.b, v...)
}

func (e *encoder) str(v string) {
	e.u32(uint32(len(v)))
	e.b = append(e.b, v...)
}

// decoder reads the fields of a message body. After the first field that does
// not fit, every read gives zero and ok is false, so that callers check once.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if d.bad || n < 0 || n > len(d.b) {
		d.bad = true
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) u8() byte {
	if v := d.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if v := d.take(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if v := d.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

// bytes returns a part of the body, not a copy.
func (d *decoder) bytes() []byte {
	n := d.u32()
	if uint64(n) > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	return d.take(int(n))
}

func (d *decoder) str() string { return string(d.bytes()) }

// count reads a number of elements that take at least least bytes each, so
// that a lying number cannot make us allocate more than was sent.
func (d *decoder) count(least int) int {
	n := d.u32()
	if uint64(n)*uint64(least) > uint64(len(d.b)) {
		d.bad = true
		return 0
	}
	return int(n)
}

// done is true when every field was read and nothing is left over.
func (d *decoder) done() bool { return !d.bad && len(d.b) == 0 }
