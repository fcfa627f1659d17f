package bootstrap

import (
	"errors"
	"io"
	"net/netip"
	"time"
)

// link is one control connection, seen from either end.
type link interface {
	// send queues a frame and never blocks. Errors show at recv.
	send(frame)
	// recv waits for the next frame; one goroutine at a time.
	recv() (frame, error)
	// finish closes after what is queued has left, or after limit.
	finish(limit time.Duration)
	// close ends the link at once; recv of both ends returns an error.
	close()
	// registered tells the host's end that the member has said who it is.
	registered()
	// elsewhere tells the member's end at which addresses the host can be found as well.
	elsewhere([]netip.AddrPort)
	// undelivered is true while something that was sent has not reached the other host.
	undelivered() bool
	// where is the other end's address, for people.
	where() string
}

// isClosed is true for the errors by which a connection says that its other
// end has gone.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isReset(err)
}
