package clique

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	stdnet "net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/device/host/arena"
)

const (
	challengeBytes = 32
	macBytes       = sha256.Size
	itemBytes      = 8
	askBytes       = IDBytes + challengeBytes + itemBytes + macBytes
	answerBytes    = arena.NonceBytes + 8 + macBytes
)

// IDBytes is the length of a secret's public name.
const IDBytes = 16

// ID names a secret without giving it away.
type ID [IDBytes]byte

// IDOf derives the name of a secret.
func IDOf(secret []byte) ID {
	var id ID
	copy(id[:], mac(secret, "clique id"))
	return id
}

func mac(secret []byte, role string, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(role))
	m.Write([]byte{0})
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// theArena is the item that stands for the arena; others are numbers of device allocations.
const theArena = 0

// ask is the client's message.
func ask(id ID, secret, theirs, mine []byte, item uint64) []byte {
	b := append(make([]byte, 0, askBytes), id[:]...)
	b = append(b, mine...)
	b = binary.BigEndian.AppendUint64(b, item)
	return append(b, mac(secret, "client", theirs, b[IDBytes:])...)
}

// parseAsk splits the client's message; the proof is not yet checked.
func parseAsk(b []byte) (a asked, ok bool) {
	if len(b) != askBytes {
		return a, false
	}
	copy(a.id[:], b)
	end := len(b) - macBytes
	a.challenge, a.signed, a.proof = b[IDBytes:IDBytes+challengeBytes], b[IDBytes:end], b[end:]
	a.item = binary.BigEndian.Uint64(b[IDBytes+challengeBytes:])
	return a, true
}

// asked is a client's message taken apart.
type asked struct {
	id                       ID
	challenge, signed, proof []byte
	item                     uint64
}

// answer is the server's last message.
func answer(secret, client, server []byte, nonce arena.Nonce, size uint64) []byte {
	b := append(make([]byte, 0, answerBytes), nonce[:]...)
	b = binary.BigEndian.AppendUint64(b, size)
	return append(b, mac(secret, "server", client, server, b)...)
}

// parseAnswer checks the server's last message.
func parseAnswer(b, secret, client, server []byte) (nonce arena.Nonce, size uint64, ok bool) {
	if len(b) != answerBytes {
		return nonce, 0, false
	}
	head := b[:arena.NonceBytes+8]
	if !hmac.Equal(b[len(head):], mac(secret, "server", client, server, head)) {
		return nonce, 0, false
	}
	copy(nonce[:], head)
	return nonce, binary.BigEndian.Uint64(head[arena.NonceBytes:]), true
}

// sameUser checks that the process at the other end runs under our user id, and gives its process id; that of whoever
// began to listen (unix(7), SO_PEERCRED).
func sameUser(c *stdnet.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var inner error
	if err := raw.Control(func(fd uintptr) {
		cred, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if inner != nil {
		return 0, fmt.Errorf("SO_PEERCRED: %w", inner)
	}
	if me := uint32(os.Geteuid()); cred.Uid != me {
		return 0, fmt.Errorf("process %d runs as user %d, this one as user %d", cred.Pid, cred.Uid, me)
	}
	return int(cred.Pid), nil
}
