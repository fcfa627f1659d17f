package bootstrap

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net/netip"
)

const (
	roomIDBytes = 16
	secretBytes = 32
)

// RoomID names a room among those of a service; it is no secret.
type RoomID [roomIDBytes]byte

// Secret is what every member of a room must prove to know.
type Secret [secretBytes]byte

// String keeps secrets out of logs and error texts.
func (Secret) String() string { return "secret" }

// GoString keeps secrets out of %#v as well.
func (Secret) GoString() string { return "secret" }

// Room is what a rank needs to find and enter a room.
type Room struct {
	ID     RoomID
	Secret Secret
	Addrs  []netip.AddrPort // where its host may listen, best first
}

// At returns the room with the addresses of its host, usually those that the
// parent group knows of the child's rank 0 (Group.ServiceAddrs).
func (r Room) At(addrs []netip.AddrPort) Room {
	r.Addrs = addrs
	return r
}

func (r Room) String() string { return fmt.Sprintf("room %x", r.ID[:4]) }

// derive gives a secret that only who knows the parent's can compute.
func (s Secret) derive(purpose string, label []byte) Secret {
	m := hmac.New(sha256.New, s[:])
	m.Write([]byte("gccl bootstrap " + purpose))
	m.Write([]byte{0})
	m.Write(label)
	var out Secret
	m.Sum(out[:0])
	return out
}

// roomOf makes the room of a secret; its id follows from the secret.
func roomOf(s Secret) Room {
	r := Room{Secret: s}
	id := s.derive("room id", nil)
	copy(r.ID[:], id[:])
	return r
}
