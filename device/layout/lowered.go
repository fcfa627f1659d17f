// Package layout owns the Go mirrors of the C structures that Go, C and CUDA share, and the proof that they have
// the same layout. It must not know what the structures are used for.
package layout

import "structs"

// Constants of lowered.h.
const (
	LoweredMagic   = 0x4c50434c // "LCPL"
	LoweredVersion = 1
	MaxRefs        = 4
	MethodBytes    = 28

	// MaxEdges of shared.h: edges that end at a rank; a plan has as many that begin there at most.
	MaxEdges = 32

	FlagAllPeers = 1
	FlagFold     = 2
	FlagFinal    = 4

	NeedsSend = 1
	NeedsRecv = 2
)

// Affine mirrors gccl_affine.
type Affine struct {
	_               structs.HostLayout
	Base, I, J, Mod int32
}

// Ref mirrors gccl_ref.
type Ref struct {
	_              structs.HostLayout
	Space, Partial uint8
	Edge           uint16
	Count          uint32
	Rank, Chunk    Affine
}

// Op mirrors gccl_lop.
type Op struct {
	_                       structs.HostLayout
	Kind, When, Sync, Flags uint8
	NSrc, NDst              uint8
	Edge                    uint16
	Step                    uint32
	N                       uint32 // loop: trip count
	Jump                    uint32 // loop: index of its end; end: index of its loop
	Pad                     uint32
	Peer                    Affine
	Src, Dst                [MaxRefs]Ref
}

// Edge mirrors gccl_edge.
type Edge struct {
	_            structs.HostLayout
	Peer         int32
	Slots        uint16
	Out, Pad     uint8
	Index, Place uint32
}

// Lowered mirrors gccl_lowered, the head of a block. Ops, then edges, follow it in memory.
type Lowered struct {
	_                         structs.HostLayout
	Magic, Version            uint32
	Size                      uint32 // of the whole block, bytes
	Coll, Split, Eager, Needs uint8
	NRanks, Rank, Root        int32
	SendParts, RecvParts      uint32
	Steps                     uint32
	NOps, NEdges              uint32
	Places                    uint32 // slots into which scratch is divided
	Method                    [MethodBytes]byte
}

// Sizes in bytes.
const (
	AffineSize  = 16
	RefSize     = 40
	OpSize      = 40 + 2*MaxRefs*RefSize
	EdgeSize    = 16
	LoweredSize = 80
)
