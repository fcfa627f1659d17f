package transport

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ConnID names one end of a connection: random, so that nobody guesses it and two processes have no common one.
type ConnID [16]byte

// NewConnID makes a name.
func NewConnID() (id ConnID, err error) {
	_, err = rand.Read(id[:])
	return id, err
}

// Hello is what the dialing end of a stream says of it.
type Hello struct {
	To, From ConnID
	Index    uint16 // of the stream in its connection
	Count    uint16 // streams of the connection
	Path     uint16 // device index at the dialing end
}

// The handshake of a stream has messages of fixed length, so that nothing a stranger says makes us allocate or wait for
// more. Both ends prove the secret over everything said:
//
//	dialer:   hello = magic (8), to (16), from (16), index, count, path (2 each), nonce (32)
//	listener: nonce (32)                                             - also for a name that is not known here
//	dialer:   HMAC-SHA-256(secret, role, hello, listener's nonce)
//	listener: HMAC-SHA-256(secret, role, hello, listener's nonce)
const (
	authMagic  = "GCCLst01" // the digits are the version of what follows on the stream
	nonceBytes = 32
	helloBytes = len(authMagic) + 16 + 16 + 6 + nonceBytes
	proofBytes = sha256.Size
)

func (h Hello) encode(nonce []byte) []byte {
	b := make([]byte, 0, helloBytes)
	b = append(b, authMagic...)
	b = append(b, h.To[:]...)
	b = append(b, h.From[:]...)
	b = binary.LittleEndian.AppendUint16(b, h.Index)
	b = binary.LittleEndian.AppendUint16(b, h.Count)
	b = binary.LittleEndian.AppendUint16(b, h.Path)
	return append(b, nonce...)
}

// ParseHello decodes the first message of a stranger.
func ParseHello(b []byte) (h Hello, err error) {
	if len(b) != helloBytes {
		return h, fmt.Errorf("a greeting of %d bytes", len(b))
	}
	if string(b[:len(authMagic)]) != authMagic {
		return h, fmt.Errorf("a greeting that begins with %q", b[:len(authMagic)])
	}
	b = b[len(authMagic):]
	copy(h.To[:], b)
	copy(h.From[:], b[16:])
	h.Index = binary.LittleEndian.Uint16(b[32:])
	h.Count = binary.LittleEndian.Uint16(b[34:])
	h.Path = binary.LittleEndian.Uint16(b[36:])
	if h.Count == 0 || h.Index >= h.Count {
		return h, fmt.Errorf("stream %d of %d", h.Index, h.Count)
	}
	return h, nil
}

func proof(secret Secret, role string, hello, nonce []byte) []byte {
	m := hmac.New(sha256.New, secret[:])
	m.Write([]byte("gccl stream " + role + "\x00"))
	m.Write(hello)
	m.Write(nonce)
	return m.Sum(nil)
}

// ErrUnproved says that the other end does not know the secret, or not the connection.
var ErrUnproved = errors.New("the other end does not know this connection or its secret")

// ProveAsDialer is the dialing end of the handshake.
func ProveAsDialer(rw io.ReadWriter, h Hello, secret Secret) error {
	var mine, theirs [nonceBytes]byte
	if _, err := rand.Read(mine[:]); err != nil {
		return err
	}
	hello := h.encode(mine[:])
	if _, err := rw.Write(hello); err != nil {
		return err
	}
	if _, err := io.ReadFull(rw, theirs[:]); err != nil {
		return fmt.Errorf("no answer to the greeting: %w", err)
	}
	if _, err := rw.Write(proof(secret, "dialer", hello, theirs[:])); err != nil {
		return err
	}
	var answer [proofBytes]byte
	if _, err := io.ReadFull(rw, answer[:]); err != nil {
		return fmt.Errorf("%w (%w)", ErrUnproved, err)
	}
	if !hmac.Equal(answer[:], proof(secret, "listener", hello, theirs[:])) {
		return ErrUnproved
	}
	return nil
}

// ProveAsListener is the listening end, up to its own proof, which the caller sends when it takes the stream. lookup gives
// the secret of a connection; one that is not known is answered like one with a wrong secret.
func ProveAsListener(rw io.ReadWriter, lookup func(ConnID) (Secret, bool)) (h Hello, answer []byte, err error) {
	var hello [helloBytes]byte
	if _, err := io.ReadFull(rw, hello[:]); err != nil {
		return h, nil, fmt.Errorf("no complete greeting: %w", err)
	}
	if h, err = ParseHello(hello[:]); err != nil {
		return h, nil, err
	}
	var nonce [nonceBytes]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return h, nil, err
	}
	if _, err := rw.Write(nonce[:]); err != nil {
		return h, nil, err
	}
	var said [proofBytes]byte
	if _, err := io.ReadFull(rw, said[:]); err != nil {
		return h, nil, fmt.Errorf("no proof: %w", err)
	}
	secret, known := lookup(h.To)
	if right := hmac.Equal(said[:], proof(secret, "dialer", hello[:], nonce[:])); !right || !known {
		return h, nil, ErrUnproved
	}
	return h, proof(secret, "listener", hello[:], nonce[:]), nil
}
