package clique

import "unsafe"

func (p *Peer) bytes(off, n uint64) []byte {
	base := p.Base + uintptr(off)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&base)), n)
}
