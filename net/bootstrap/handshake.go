package bootstrap

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// The handshake has messages of fixed length, so that nothing an unknown peer
// says can make us allocate or wait for more:
//
//	member: preamble = magic (8), room id (16), nonce (32)
//	host:   nonce (32)                       - for every room id, known or not
//	member: HMAC(secret, role, preamble, host's nonce)
//	host:   HMAC(secret, role, preamble, host's nonce)
const (
	nonceBytes    = 32
	proofBytes    = sha256.Size
	magicText     = "GCCLbt02" // the digits are the version of this protocol
	preambleBytes = len(magicText) + roomIDBytes + nonceBytes
)

var (
	errNotOurs     = errors.New("closed the connection before the handshake: not a GCCL process, or one with another protocol version")
	errUnknownRoom = errors.New("answered, but does not know this id")
	errImpostor    = errors.New("answered without knowing the secret of this id")
)

type preamble [preambleBytes]byte

func newPreamble(room RoomID) (preamble, error) {
	var p preamble
	copy(p[:], magicText)
	copy(p[len(magicText):], room[:])
	_, err := rand.Read(p[len(magicText)+roomIDBytes:])
	return p, err
}

// parsePreamble returns the id of the room that a new connection asks for.
func parsePreamble(p preamble) (RoomID, error) {
	var room RoomID
	if string(p[:len(magicText)]) != magicText {
		return room, fmt.Errorf("begins with %q", p[:len(magicText)])
	}
	copy(room[:], p[len(magicText):])
	return room, nil
}

func proof(secret Secret, role string, p preamble, hostNonce []byte) []byte {
	m := hmac.New(sha256.New, secret[:])
	m.Write([]byte("gccl bootstrap " + role))
	m.Write(p[:])
	m.Write(hostNonce)
	return m.Sum(nil)
}

// proveToHost is the member's side of the handshake.
func proveToHost(rw io.ReadWriter, room Room) error {
	p, err := newPreamble(room.ID)
	if err != nil {
		return err
	}
	if _, err := rw.Write(p[:]); err != nil {
		return err
	}
	var nonce [nonceBytes]byte
	if _, err := io.ReadFull(rw, nonce[:]); err != nil {
		return closedMeans(err, errNotOurs)
	}
	if _, err := rw.Write(proof(room.Secret, "member", p, nonce[:])); err != nil {
		return err
	}
	var answer [proofBytes]byte
	if _, err := io.ReadFull(rw, answer[:]); err != nil {
		return closedMeans(err, errUnknownRoom)
	}
	if !hmac.Equal(answer[:], proof(room.Secret, "host", p, nonce[:])) {
		return errImpostor
	}
	return nil
}

// admitMember is the host's side, up to the host's own proof, which it returns
// for the caller to send. lookup gives the secret of a room; the answer to an
// unknown room differs from the one to a wrong proof in nothing.
func admitMember(rw io.ReadWriter, lookup func(RoomID) (Secret, bool)) (room RoomID, hostProof []byte, err error) {
	var p preamble
	if _, err := io.ReadFull(rw, p[:]); err != nil {
		return RoomID{}, nil, fmt.Errorf("sent no complete greeting: %w", err)
	}
	id, err := parsePreamble(p)
	if err != nil {
		return RoomID{}, nil, err
	}
	var nonce [nonceBytes]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return RoomID{}, nil, err
	}
	if _, err := rw.Write(nonce[:]); err != nil {
		return RoomID{}, nil, err
	}
	var answer [proofBytes]byte
	if _, err := io.ReadFull(rw, answer[:]); err != nil {
		return RoomID{}, nil, fmt.Errorf("sent no proof: %w", err)
	}
	secret, known := lookup(id)
	right := hmac.Equal(answer[:], proof(secret, "member", p, nonce[:]))
	if !known {
		return id, nil, errNoSuchRoom
	}
	if !right {
		return id, nil, errors.New("does not know the secret of the room it asks for")
	}
	return id, proof(secret, "host", p, nonce[:]), nil
}

// errNoSuchRoom is no noise: members of a child may come before its rank 0 has
// opened the room, and try again.
var errNoSuchRoom = errors.New("asks for a room that is not open here")

func closedMeans(err, meaning error) error {
	if isClosed(err) {
		return meaning
	}
	return err
}
