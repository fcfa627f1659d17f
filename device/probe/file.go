package probe

import (
	"fmt"
	"io"
)

// fileHead and fileEnd are what stands around the events.
const (
	fileHead = `{"displayTimeUnit":"ns","traceEvents":[` + "\n" + `{"ph":"M","name":"gccl_trace","pid":0,"tid":0,"ts":0,"args":{"version":1}}`
	fileEnd  = "\n]}\n"
)

// File keeps a trace file whole: after every write it is a complete JSON text. What stands behind the events at that moment
// is written over by the next ones; spaces fill up what is then left of it. A process that is killed between two writes
// leaves the file of the first.
type File struct {
	w     io.WriterAt
	at    int64 // where the next events go
	end   int64 // of the file
	limit int64
	full  bool
}

// NewFile begins a file. It takes at most limit bytes of events.
func NewFile(w io.WriterAt, limit int64) *File { return &File{w: w, limit: limit} }

// Write appends events (each with a comma before it) and what is open behind them. It says whether there was room for the events.
func (f *File) Write(events, tail []byte) (room bool, err error) {
	var b []byte
	if f.at == 0 {
		b = append(b, fileHead...)
	}
	if f.full = f.full || f.at+int64(len(events)) > f.limit; !f.full {
		b = append(b, events...)
	}
	keep := int64(len(b))
	b = append(append(b, tail...), fileEnd...)
	for f.at+int64(len(b)) < f.end {
		b = append(b, ' ')
	}
	n, err := f.w.WriteAt(b, f.at)
	if err != nil {
		return !f.full, fmt.Errorf("%d of %d bytes written: %w", n, len(b), err)
	}
	f.end = f.at + int64(len(b))
	f.at += keep
	return !f.full, nil
}

// Full says whether the file takes no more events.
func (f *File) Full() bool { return f.full }
