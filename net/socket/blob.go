package socket

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/gccl/gccl/net/transport"
)

// place is an address where an endpoint listens. rail is the index of its interface at the listening end.
type place struct {
	at   netip.AddrPort
	rail int
}

// The blob of a connection: its name (16 bytes), then for each address: rail (1), family 4 or 6 (1), port (2), address (4
// or 16). The zone of a link-local address means nothing at another host and is not said.
const maxPlaces = (transport.MaxBlob - 16) / 20

func encodeBlob(id transport.ConnID, places []place) []byte {
	b := append([]byte(nil), id[:]...)
	for i, p := range places {
		if i == maxPlaces {
			break
		}
		a := p.at.Addr().WithZone("")
		family := byte(6)
		if a.Is4() {
			family = 4
		}
		b = append(b, byte(p.rail), family)
		b = binary.LittleEndian.AppendUint16(b, p.at.Port())
		b = append(b, a.AsSlice()...)
	}
	return b
}

// decodeBlob reads what a peer says of itself.
func decodeBlob(b []byte) (id transport.ConnID, places []place, err error) {
	bad := func(what string) (transport.ConnID, []place, error) {
		return id, nil, fmt.Errorf("%d bytes that are no name of a socket connection: %s", len(b), what)
	}
	if len(b) > transport.MaxBlob || len(b) < len(id) {
		return bad("wrong length")
	}
	copy(id[:], b)
	for rest := b[len(id):]; len(rest) > 0; {
		if len(rest) < 4 {
			return bad("cut off")
		}
		n := map[byte]int{4: 4, 6: 16}[rest[1]]
		if n == 0 || len(rest) < 4+n {
			return bad("a wrong address")
		}
		a, _ := netip.AddrFromSlice(rest[4 : 4+n])
		port := binary.LittleEndian.Uint16(rest[2:])
		if port == 0 || a.IsUnspecified() || a.IsMulticast() || a.Is4In6() {
			return bad("a wrong address")
		}
		places = append(places, place{netip.AddrPortFrom(a, port), int(rest[0])})
		rest = rest[4+n:]
	}
	if len(places) == 0 {
		return bad("no address")
	}
	return id, places, nil
}
