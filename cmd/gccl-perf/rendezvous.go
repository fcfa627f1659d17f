package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdnet "net"
	"time"
)

// The rendezvous joins the front-ends that a launcher started: rank 0 listens, the others dial. A connection opens with
// one line "hello" from the dialer and one "welcome" back. Then the job goes one way and events the other, each as
// JSON lines; closing the connection ends the ranks behind it.

// hello is the dialer's first line.
type hello struct {
	Magic   string `json:"gccl_perf"`
	Token   string `json:"token"`
	Rank    int    `json:"rank"` // of the process, not of its threads
	Size    int    `json:"size"`
	Threads int    `json:"threads"`
	Host    string `json:"host"`
}

const helloMagic = "1"

// helloTime is how long a connection may stay silent before it counts as noise.
const helloTime = 5 * time.Second

// maxLine bounds a line of the rendezvous; a job of thousands of measurements fits.
const maxLine = 16 << 20

type welcome struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

type jobLine struct {
	Job string `json:"job"`
}

// listenFirst takes the first address that is free.
func listenFirst(addrs []string) (stdnet.Listener, error) {
	var all error
	for _, a := range addrs {
		l, err := stdnet.Listen("tcp", a)
		if err == nil {
			return l, nil
		}
		all = errors.Join(all, err)
	}
	return nil, fmt.Errorf("rank 0 cannot listen: %w; set GCCL_PERF_ADDR to a free host:port", all)
}

// remote is the ranks of another front-end.
type remote struct {
	conn     stdnet.Conn
	host     string
	first, n int
}

func (r *remote) ranks() (int, int) { return r.first, r.n }

func (r *remote) start(job string) error {
	if err := json.NewEncoder(r.conn).Encode(jobLine{Job: job}); err != nil {
		return fmt.Errorf("cannot send the job to %s on %s: %w", groupName(r), r.host, err)
	}
	return nil
}

func (r *remote) kill() { _ = r.conn.Close() } // the other end sees the close; a second close changes nothing

// acceptAll waits for all other processes of the world. Noise is dropped; a process that does not fit is told why. On
// return either all are connected, or an error names who is missing.
func acceptAll(l stdnet.Listener, w *world, threads int, wait time.Duration) ([]*remote, error) {
	deadline := time.Now().Add(wait)
	joined := make(chan *remote)
	closing := make(chan struct{})
	defer close(closing)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed by the caller's side
			}
			go func() {
				r := greet(conn, w, threads)
				if r == nil {
					return
				}
				select {
				case joined <- r:
				case <-closing:
					r.kill()
				}
			}()
		}
	}()
	peers := make([]*remote, w.size)
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for count := 1; count < w.size; {
		select {
		case r := <-joined:
			at := r.first / threads
			if peers[at] != nil {
				_ = json.NewEncoder(r.conn).Encode(welcome{Error: fmt.Sprintf("process %d has joined already", at)})
				r.kill()
				continue
			}
			if json.NewEncoder(r.conn).Encode(welcome{OK: true}) != nil {
				r.kill()
				continue
			}
			peers[at] = r
			count++
		case <-timer.C:
			var missing []int
			for i := 1; i < w.size; i++ {
				if peers[i] == nil {
					missing = append(missing, i)
				} else {
					peers[i].kill()
				}
			}
			return nil, fmt.Errorf("process %s of %d did not connect to %v within %v", rankList(missing), w.size, l.Addr(), wait)
		}
	}
	return peers[1:], nil
}

// greet reads the hello of one connection; nil where it is noise or does not fit.
func greet(conn stdnet.Conn, w *world, threads int) *remote {
	_ = conn.SetDeadline(time.Now().Add(helloTime))
	var h hello
	line, err := readLine(bufio.NewReaderSize(conn, 4096), 4096)
	if err != nil || json.Unmarshal(line, &h) != nil || h.Magic != helloMagic || h.Token != w.token {
		conn.Close()
		return nil
	}
	refuse := ""
	switch {
	case h.Size != w.size:
		refuse = fmt.Sprintf("it counts %d processes, rank 0 counts %d", h.Size, w.size)
	case h.Threads != threads:
		refuse = fmt.Sprintf("it has -t %d, rank 0 has -t %d", h.Threads, threads)
	case h.Rank < 1 || h.Rank >= w.size:
		refuse = fmt.Sprintf("process %d of %d cannot join", h.Rank, w.size)
	}
	if refuse != "" {
		_ = json.NewEncoder(conn).Encode(welcome{Error: refuse})
		conn.Close()
		return nil
	}
	_ = conn.SetDeadline(time.Time{})
	return &remote{conn: conn, host: h.Host, first: h.Rank * threads, n: threads}
}

// readLine reads up to a newline, at most limit bytes.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > limit {
			return nil, fmt.Errorf("a line of more than %d bytes", limit)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// follow passes the events of a remote group on; its end is an exit event like a process's.
func (r *remote) follow(source int, to chan<- event) {
	scanner := bufio.NewScanner(r.conn)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var e event
		if json.Unmarshal(scanner.Bytes(), &e) != nil || e.Event == "" {
			break
		}
		e.source = source
		to <- e
		if e.Event == "exit" {
			r.kill()
			return
		}
	}
	r.kill()
	to <- event{Event: "exit", Rank: r.first, Text: "lost the connection to its front-end on " + r.host, source: source}
}

// dialRoot connects to rank 0, which may come later than this process. It tries every address in turn.
func dialRoot(w *world, threads int, host string, wait time.Duration) (stdnet.Conn, *bufio.Reader, error) {
	const pause = 50 * time.Millisecond
	deadline := time.Now().Add(wait)
	var last error
	for time.Now().Before(deadline) {
		for _, addr := range w.addrs {
			conn, err := stdnet.DialTimeout("tcp", addr, helloTime)
			if err != nil {
				last = err
				continue
			}
			reader := bufio.NewReaderSize(conn, 1<<16)
			err = sayHello(conn, reader, w, threads, host)
			if err == nil {
				return conn, reader, nil
			}
			conn.Close()
			last = fmt.Errorf("%s: %w", addr, err)
			var refused refusedError
			if errors.As(err, &refused) {
				return nil, nil, fmt.Errorf("process %d: rank 0 refuses: %w", w.rank, err)
			}
		}
		time.Sleep(pause)
	}
	return nil, nil, fmt.Errorf("process %d of %d cannot reach rank 0 within %v: %w; set GCCL_PERF_ADDR to host:port of the first machine", w.rank, w.size, wait, last)
}

type refusedError string

func (e refusedError) Error() string { return string(e) }

func sayHello(conn stdnet.Conn, reader *bufio.Reader, w *world, threads int, host string) error {
	_ = conn.SetDeadline(time.Now().Add(helloTime))
	h := hello{Magic: helloMagic, Token: w.token, Rank: w.rank, Size: w.size, Threads: threads, Host: host}
	if err := json.NewEncoder(conn).Encode(h); err != nil {
		return err
	}
	line, err := readLine(reader, 4096)
	if err != nil {
		return err
	}
	var answer welcome
	if err := json.Unmarshal(line, &answer); err != nil {
		return fmt.Errorf("not a gccl-perf: %w", err)
	}
	if !answer.OK {
		return refusedError(answer.Error)
	}
	return conn.SetDeadline(time.Time{})
}

// serveRoot is the life of a front-end that is not rank 0: the job comes down, its own group's events go up, and a
// closed connection ends the group. events is what the group says.
func serveRoot(conn io.ReadWriter, reader *bufio.Reader, g group, events <-chan event, stop <-chan struct{}) error {
	lost := make(chan error, 1)
	jobs := make(chan string, 1)
	go func() {
		for {
			line, err := readLine(reader, maxLine)
			var j jobLine
			if err == nil {
				err = json.Unmarshal(line, &j)
			}
			if err != nil {
				lost <- err
				return
			}
			jobs <- j.Job
		}
	}()
	out := json.NewEncoder(conn)
	var ended error
	for {
		select {
		case job := <-jobs:
			if err := g.start(job); err != nil {
				ended = errors.Join(ended, err)
				g.kill()
			}
		case err := <-lost:
			if ended == nil {
				ended = fmt.Errorf("rank 0 ended the run: %w", err)
			}
			lost = nil
			g.kill()
		case <-stop:
			ended = errors.New("interrupted")
			stop = nil
			g.kill()
		case e := <-events:
			// a failed write shows as a lost connection at the reader
			_ = out.Encode(e)
			if e.Event == "exit" {
				if e.Text != "" && ended == nil {
					ended = errors.New(groupName(g) + ": " + e.Text)
				}
				return ended
			}
		}
	}
}
