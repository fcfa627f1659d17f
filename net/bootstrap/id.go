package bootstrap

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/netip"
	"strings"

	"github.com/gccl/gccl/internal/xerr"
)

// IDBytes is the size of ncclUniqueId (nccl.h, NCCL_UNIQUE_ID_BYTES).
const IDBytes = 128

// ID is a unique id: an invitation to one room. All numbers are big endian.
//
//	 0..7    random
//	 8       version of this layout
//	 9       kind: 1 = addresses of the creator, 2 = text of a fixed address
//	10..11   port of all addresses
//	12..15   process id of the creator
//	16..47   secret
//	48..51   CRC-32 of all other bytes, to notice a half-copied id
//	52       number of addresses, or length of the text
//	53..127  addresses, best first, or the text
//
// An address is a tag and: 4 bytes of IPv4; 16 bytes of IPv6; the lower 8
// bytes, length and name of the interface for link-local IPv6; nothing for
// 127.0.0.1 and ::1. Addresses that find no room are left out, the loopback
// ones never.
type ID [IDBytes]byte

const (
	idVersion   = 1
	idKindAddrs = 1
	idKindText  = 2

	idAtSecret = 16
	idAtCRC    = 48
	idAtCount  = 52
	idAtList   = 53
	idListRoom = IDBytes - idAtList

	tagIPv4      = 1
	tagIPv6      = 2
	tagLinkLocal = 3
	tagLoop4     = 4
	tagLoop6     = 5
)

// idInfo is what an ID says.
type idInfo struct {
	room   Room
	pid    int
	static string // the text of a fixed address; empty for an ordinary id
}

// label names the id for people.
func (i idInfo) label() string {
	if i.static != "" {
		return "fixed id " + i.static
	}
	where := "no address"
	if len(i.room.Addrs) > 0 {
		where = i.room.Addrs[0].String()
	}
	return fmt.Sprintf("id made by pid %d at %s", i.pid, where)
}

// String names the id for people, without its secret.
func (id ID) String() string {
	info, err := parseID(id)
	if err != nil {
		return "invalid id"
	}
	return info.label()
}

// newID makes an id with a fresh secret for a service that listens on port.
func newID(addrs []netip.Addr, port uint16, pid int) (ID, error) {
	var id ID
	if _, err := rand.Read(id[:8]); err != nil {
		return ID{}, err
	}
	if _, err := rand.Read(id[idAtSecret : idAtSecret+secretBytes]); err != nil {
		return ID{}, err
	}
	id[8], id[9] = idVersion, idKindAddrs
	binary.BigEndian.PutUint16(id[10:], port)
	binary.BigEndian.PutUint32(id[12:], uint32(pid))
	list, n := packAddrs(addrs)
	id[idAtCount] = byte(n)
	copy(id[idAtList:], list)
	id.seal()
	return id, nil
}

// newStaticID makes the id of a fixed address. It is a function of the text
// alone, so every rank may make it by itself.
func newStaticID(text string) (ID, error) {
	if len(text) > idListRoom {
		return ID{}, fmt.Errorf("the address is longer than the %d bytes that an id has room for", idListRoom)
	}
	var id ID
	secret := Secret{}.derive("fixed id", []byte(text))
	copy(id[:8], magicText)
	id[8], id[9] = idVersion, idKindText
	copy(id[idAtSecret:], secret[:])
	id[idAtCount] = byte(len(text))
	copy(id[idAtList:], text)
	id.seal()
	return id, nil
}

func (id *ID) seal() { binary.BigEndian.PutUint32(id[idAtCRC:], id.checksum()) }

func (id *ID) checksum() uint32 {
	sum := crc32.ChecksumIEEE(id[:idAtCRC])
	return crc32.Update(sum, crc32.IEEETable, id[idAtCount:])
}

// CheckID says what is wrong with an id, nil if nothing is.
func CheckID(id ID) error {
	_, err := parseID(id)
	return err
}

func parseID(id ID) (idInfo, error) {
	bad := func(format string, args ...any) (idInfo, error) {
		return idInfo{}, xerr.New(xerr.InvalidArgument, opInit, format, args...).WithObject("unique id").
			WithHint("make the id with ncclGetUniqueId in one process and give all %d bytes of it to every rank", IDBytes)
	}
	switch {
	case id == ID{}:
		return bad("the id is all zeros: ncclGetUniqueId failed, or its result has not been copied to this rank")
	case id[8] != idVersion:
		return bad("byte 8 is %d, not version %d: not an id of this library", id[8], idVersion)
	case binary.BigEndian.Uint32(id[idAtCRC:]) != id.checksum():
		return bad("the checksum does not fit: the id was copied only in part, or is not an id")
	}
	var info idInfo
	info.pid = int(binary.BigEndian.Uint32(id[12:]))
	var secret Secret
	copy(secret[:], id[idAtSecret:])
	info.room = roomOf(secret)
	n := int(id[idAtCount])
	switch id[9] {
	case idKindText:
		if n == 0 || n > idListRoom {
			return bad("the fixed address has %d bytes", n)
		}
		info.static = string(id[idAtList : idAtList+n])
		if _, err := parseStatic(info.static); err != nil {
			return bad("the fixed address %q: %v", info.static, err)
		}
	case idKindAddrs:
		addrs, ok := unpackAddrs(id[idAtList:], n)
		if !ok {
			return bad("its address list is malformed")
		}
		for _, a := range addrs {
			info.room.Addrs = append(info.room.Addrs, netip.AddrPortFrom(a, binary.BigEndian.Uint16(id[10:])))
		}
	default:
		return bad("kind %d is unknown", id[9])
	}
	return info, nil
}

var linkLocalPrefix = netip.MustParsePrefix("fe80::/64")

func packAddr(a netip.Addr) []byte {
	switch {
	case a == netip.AddrFrom4([4]byte{127, 0, 0, 1}):
		return []byte{tagLoop4}
	case a == netip.IPv6Loopback():
		return []byte{tagLoop6}
	case a.Is4():
		b := a.As4()
		return append([]byte{tagIPv4}, b[:]...)
	case linkLocalPrefix.Contains(a.WithZone("")):
		b := a.As16()
		out := append([]byte{tagLinkLocal}, b[8:]...)
		out = append(out, byte(len(a.Zone())))
		return append(out, a.Zone()...)
	case a.Is6():
		b := a.As16()
		return append([]byte{tagIPv6}, b[:]...)
	}
	return nil
}

// packAddrs keeps the order and room for the loopback addresses.
func packAddrs(addrs []netip.Addr) (list []byte, n int) {
	room := idListRoom
	for _, a := range addrs {
		if a.IsLoopback() {
			room -= len(packAddr(a))
		}
	}
	for _, a := range addrs {
		b := packAddr(a)
		if len(b) == 0 {
			continue
		}
		if !a.IsLoopback() {
			if len(b) > room {
				continue
			}
			room -= len(b)
		}
		list = append(list, b...)
		n++
	}
	return list, n
}

func unpackAddrs(b []byte, n int) ([]netip.Addr, bool) {
	d := decoder{b: b}
	var out []netip.Addr
	for range n {
		switch d.u8() {
		case tagIPv4:
			if v := d.take(4); v != nil {
				out = append(out, netip.AddrFrom4([4]byte(v)))
			}
		case tagIPv6:
			if v := d.take(16); v != nil {
				out = append(out, netip.AddrFrom16([16]byte(v)))
			}
		case tagLinkLocal:
			low := d.take(8)
			zone := string(d.take(int(d.u8())))
			if d.bad || strings.ContainsAny(zone, "%/ \x00") {
				return nil, false
			}
			full := [16]byte{0: 0xfe, 1: 0x80}
			copy(full[8:], low)
			out = append(out, netip.AddrFrom16(full).WithZone(zone))
		case tagLoop4:
			out = append(out, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
		case tagLoop6:
			out = append(out, netip.IPv6Loopback())
		default:
			return nil, false
		}
		if d.bad {
			return nil, false
		}
	}
	return out, len(bytes.Trim(d.b, "\x00")) == 0
}
