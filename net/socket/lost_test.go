package socket

import (
	"bytes"
	"context"
	stdnet "net"
	"testing"
	"time"

	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

// losing is an endpoint whose connections begin with a dead stream.
type losing struct{ transport.Endpoint }

type losingConn struct{ *conn }

func (e losing) NewConn(peer int) (transport.Conn, error) {
	c, err := e.Endpoint.NewConn(peer)
	if err != nil {
		return nil, err
	}
	return losingConn{c.(*conn)}, nil
}

func (c losingConn) Connect(ctx context.Context, remote []byte) error {
	streams, err := c.meet(ctx, remote)
	defer closeAll(streams)
	if err != nil {
		return err
	}
	lose(streams, c.peer%len(streams))
	return c.start(streams)
}

func lose(streams []*stdnet.TCPConn, i int) {
	_ = streams[i].Close()
	streams[i] = nil
}

// Each end misses another stream from the beginning; what they would carry goes over the others.
func TestLostFromTheBeginning(t *testing.T) {
	tr := conformance.NewTraffic(t, conformance.Maker{Open: func(t testing.TB, rank int, secret transport.Secret) transport.Endpoint {
		e, err := New(Config{Threads: 2, Sockets: 2}).Open(transport.Options{Rank: rank, Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		return losing{e}
	}}, 7)
	for range 5 {
		tr.Round()
		tr.Round()
		if a, b := tr.Stats(); a.Paths != 2 || b.Paths != 2 {
			t.Errorf("of 4 streams, of which each end misses one: %v; %v", a, b)
		}
		tr.Reconnect()
	}
}

// A stream that is lost between its proof and its role is given up by both ends; the others connect.
func TestStreamLostWhileConnecting(t *testing.T) {
	var ends [2]*conn
	for rank := range ends {
		e, err := New(Config{Threads: 2, Sockets: 2}).Open(transport.Options{Rank: rank})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		c, err := e.NewConn(1 - rank)
		if err != nil {
			t.Fatal(err)
		}
		ends[rank] = c.(*conn)
	}
	dialer, listener := ends[0], ends[1]
	if bytes.Compare(dialer.id[:], listener.id[:]) > 0 {
		dialer, listener = listener, dialer
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	taken := make(chan []*stdnet.TCPConn, 1)
	go func() {
		streams, err := listener.await(ctx, dialer.id)
		if err != nil {
			t.Error(err)
		}
		taken <- streams
	}()
	to, places, err := decodeBlob(listener.Blob())
	if err != nil {
		t.Fatal(err)
	}
	streams, err := dialer.open(ctx, to, places)
	if err != nil {
		t.Fatal(err)
	}
	_ = streams[1].Close() // it fails when its role is written
	if err := dialer.assign(ctx, streams); err != nil {
		t.Fatal(err)
	}
	for _, side := range [][]*stdnet.TCPConn{streams, <-taken} {
		if len(side) != 4 {
			t.Fatalf("%d streams", len(side))
		}
		for i, s := range side {
			if (s == nil) != (i == 1) {
				t.Errorf("stream %d: %v", i, s)
			}
		}
		closeAll(side)
	}
}
