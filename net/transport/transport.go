// Package transport owns the seam between whoever moves data between ranks and what carries it: the C table of the data
// path (transport.h, which is the contract) and the Go interface of discovery, making and connecting. Its Go methods for
// the data path are for tests, tools and slow paths; a proxy calls the table from C.
//
// It must not know windows, signals, plans or communicators, nor any implementation: those are its siblings loop, shm,
// socket and ib, and the wrappers trace and faulty.
package transport

import (
	"context"
	"net/netip"
)

// Device is something a transport can send through.
type Device struct {
	Name  string // as the system calls it: "eth0", "mlx5_0:1", "memory"
	Speed int    // Mbit/s; 0: the system does not say
	NUMA  int    // -1: the system does not say
	PCI   string // bus address of the device it hangs on, "0000:3b:00.0"; empty if none
	Addrs []netip.Addr
}

// Secret authenticates connections: all ranks of a group derive the same one from their bootstrap.
type Secret [32]byte

// Options say what an endpoint is for.
type Options struct {
	Rank    int
	Secret  Secret
	Devices []Device // the ones to use, in order of preference; nil: all that the transport's settings allow
}

// Transport makes endpoints.
type Transport interface {
	Name() string
	// Devices lists what the settings allow, best first. An error says why there is nothing.
	Devices() ([]Device, error)
	Open(Options) (Endpoint, error)
}

// Endpoint is one rank's use of a transport.
type Endpoint interface {
	// C is the gccl_net_ep.
	C() Handle
	// NewConn prepares a connection to a rank. Any goroutine may call it, also while a thread polls.
	NewConn(peer int) (Conn, error)
	// Close ends all connections and frees the endpoint. No thread may be in its data path.
	Close() error
}

// Conn is a connection that is being made. Both ends exchange blobs, by whatever way, and connect; several connections
// between the same endpoints are possible, if each end uses the other's blob for it. Every Conn gets one Connect: one
// with an ended context only frees it.
type Conn interface {
	// Blob is what the other end needs: at most MaxBlob bytes.
	Blob() []byte
	// Connect returns when both ends have proved to each other that they know the secret, or with the reason why not. It
	// ends with ctx at the latest, and the connection is gone then. Neither end must be polled for it.
	Connect(ctx context.Context, remote []byte) error
	// C is the gccl_net_conn, from a successful Connect to its close_conn or the close of its endpoint.
	C() Handle
}
