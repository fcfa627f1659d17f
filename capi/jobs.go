package main

// #include "bridge.h"
import "C"

import (
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/gccl/gccl/comm"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/bootstrap"
)

var jobNames = map[C.int32_t]string{
	C.GCCL_JOB_INIT: "ncclCommInitRank", C.GCCL_JOB_SPLIT: "ncclCommSplit", C.GCCL_JOB_SHRINK: "ncclCommShrink", C.GCCL_JOB_GROW: "ncclCommGrow",
	C.GCCL_JOB_FINALIZE: "ncclCommFinalize", C.GCCL_JOB_DESTROY: "ncclCommDestroy", C.GCCL_JOB_ABORT: "ncclCommAbort", C.GCCL_JOB_REVOKE: "ncclCommRevoke",
	C.GCCL_JOB_WINDOW: "ncclCommWindowRegister", C.GCCL_JOB_SUSPEND: "ncclCommSuspend", C.GCCL_JOB_RESUME: "ncclCommResume",
	C.GCCL_JOB_DEVCOMM: "ncclDevCommCreate",
}

//export gcclgo_run
func gcclgo_run(jobs *C.gccl_job, n C.int32_t, blocking C.int32_t, cookie unsafe.Pointer) C.int32_t {
	return guard(nil, func() error {
		if jobs == nil || n < 1 {
			return argument("run", "no jobs")
		}
		list := unsafe.Slice(jobs, int(n))
		// The Go side of new communicators exists before run returns, so that an abort finds it.
		ready := make([]*work, n)
		for i := range list {
			ready[i] = prepare(&list[i])
		}
		if blocking != 0 {
			if C.gccl_bridge_interrupted(core.front) < 0 {
				return codeError(runAll(list, ready))
			}
			return codeError(attend(list, ready))
		}
		for _, w := range ready { // the front looks at the structures once more in done
			w.hold()
		}
		go func() {
			_ = runAll(list, ready) // each job carries its own result
			C.gccl_bridge_done(core.front, jobs, n, cookie)
			for _, w := range ready {
				w.release()
			}
		}()
		return xerr.InProgress
	})
}

// attend runs jobs for a thread that wants to be asked while it waits (gcclSetInterrupt). An exported function stays on the
// thread of its caller, so that the thread's own function is asked.
func attend(list []C.gccl_job, ready []*work) xerr.Code {
	done := make(chan xerr.Code, 1)
	go func() { done <- runAll(list, ready) }()
	ask := time.NewTicker(50 * time.Millisecond)
	defer ask.Stop()
	for {
		select {
		case code := <-done:
			return code
		case <-ask.C:
			if C.gccl_bridge_interrupted(core.front) == 1 {
				for _, w := range ready {
					w.interrupt()
				}
			}
		}
	}
}

// codeError is the code of the last job that failed; its text is in the job.
func codeError(code xerr.Code) error {
	if code == xerr.Success {
		return nil
	}
	return code
}

func runAll(list []C.gccl_job, ready []*work) xerr.Code {
	var wg sync.WaitGroup
	for _, chain := range chains(list) {
		run := func() {
			for _, i := range chain {
				runJob(&list[i], ready[i])
			}
		}
		if len(chain) == len(list) {
			run()
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			run()
		}()
	}
	wg.Wait()
	code := xerr.Success
	for i := range list {
		if list[i].rc != 0 {
			code = xerr.Code(list[i].rc)
		}
	}
	return code
}

// chains says which jobs run one after another, in the order of the calls: windows and device communicators of one communicator, which
// its ranks match by that order. All others run side by side.
func chains(list []C.gccl_job) (out [][]int) {
	at := map[*C.struct_ncclComm]int{}
	for i := range list {
		j := &list[i]
		if j.kind == C.GCCL_JOB_WINDOW || j.kind == C.GCCL_JOB_DEVCOMM {
			if k, ok := at[j.comm]; ok {
				out[k] = append(out[k], i)
				continue
			}
			at[j.comm] = len(out)
		}
		out = append(out, []int{i})
	}
	return out
}

// work is what a job is about, looked up before it starts.
type work struct {
	c, parent *comm.Comm
	err       error
	ends      bool
}

func (w *work) hold() {
	for _, c := range []*comm.Comm{w.c, w.parent} {
		if c != nil && !w.ends {
			c.Hold()
		}
	}
}

func (w *work) release() {
	for _, c := range []*comm.Comm{w.c, w.parent} {
		if c != nil && !w.ends {
			c.Release()
		}
	}
}

func (w *work) interrupt() {
	for _, c := range []*comm.Comm{w.c, w.parent} {
		if c != nil {
			c.Interrupt()
		}
	}
}

func creates(kind C.int32_t) bool {
	return kind == C.GCCL_JOB_INIT || kind == C.GCCL_JOB_SPLIT || kind == C.GCCL_JOB_SHRINK || kind == C.GCCL_JOB_GROW
}

func prepare(j *C.gccl_job) *work {
	w := &work{}
	name := jobNames[j.kind]
	if j.parent != nil {
		if w.parent, w.err = find(name, j.parent); w.err != nil {
			return w
		}
	}
	switch {
	case !creates(j.kind):
		w.c, w.err = find(name, j.comm)
	case j.comm != nil:
		s := structOf(unsafe.Pointer(j.comm))
		w.c = engine().New(s)
		s.SetCore(handles.put(w.c))
	case j.kind != C.GCCL_JOB_SPLIT || j.color != -1:
		w.err = argument(name, "no communicator to fill")
	}
	if j.kind == C.GCCL_JOB_ABORT || j.kind == C.GCCL_JOB_DESTROY {
		w.ends = true // it waits for the others' holds and gives the structure back itself
	}
	return w
}

// runJob does one job and fills rc and text.
func runJob(j *C.gccl_job, w *work) {
	j.text[0] = 0
	name := jobNames[j.kind]
	j.rc = guard(&j.text[0], func() error {
		if w.err != nil {
			return w.err
		}
		err := doJob(j, w)
		if err == nil {
			return nil
		}
		if creates(j.kind) && j.kind != C.GCCL_JOB_INIT && j.comm != nil {
			handles.drop(uint64(j.comm.core)) // the front takes a child back that did not come to be
		}
		return &named{name: name + ": " + about(j, w), err: err}
	})
}

// named puts the call and the rank in front of a text, and keeps the code.
type named struct {
	name string
	err  error
}

func (n *named) Error() string { return n.name + ": " + n.err.Error() }
func (n *named) Unwrap() error { return n.err }

func about(j *C.gccl_job, w *work) string {
	if j.kind == C.GCCL_JOB_INIT || j.kind == C.GCCL_JOB_GROW && w.parent == nil {
		return fmt.Sprintf("rank %d of %d", int(j.rank), int(j.nranks))
	}
	c := w.parent
	if c == nil {
		c = w.c
	}
	if c == nil {
		return "communicator"
	}
	return fmt.Sprintf("rank %d of %d", c.Rank(), c.NRanks())
}

func doJob(j *C.gccl_job, w *work) error {
	switch j.kind {
	case C.GCCL_JOB_INIT:
		return w.c.Init(int(j.nranks), int(j.rank), jobIDs(j), configOf(&j.config))
	case C.GCCL_JOB_SPLIT:
		return publish(j, w.parent.Split(w.c, int(j.color), int(j.key), configOf(&j.config)))
	case C.GCCL_JOB_SHRINK:
		exclude := make([]int, 0, int(j.nexclude))
		for _, r := range unsafe.Slice(j.exclude, int(j.nexclude)) {
			exclude = append(exclude, int(r))
		}
		return publish(j, w.parent.Shrink(w.c, exclude, int(j.flags), configOf(&j.config)))
	case C.GCCL_JOB_GROW:
		if w.parent == nil {
			return w.c.Init(int(j.nranks), int(j.rank), jobIDs(j), configOf(&j.config))
		}
		return publish(j, w.parent.Grow(w.c, int(j.nranks), jobIDs(j), configOf(&j.config)))
	case C.GCCL_JOB_FINALIZE:
		return w.c.Finalize()
	case C.GCCL_JOB_DESTROY:
		return w.c.Destroy()
	case C.GCCL_JOB_ABORT:
		return w.c.Abort()
	case C.GCCL_JOB_REVOKE:
		return w.c.Revoke(int(j.flags))
	case C.GCCL_JOB_WINDOW:
		win, err := w.c.RegisterWindow(uintptr(j.buff), uint64(j.size), int(j.flags))
		if err == nil && j.out != nil && !win.Nil() { // none where windows are switched off
			*j.out = win.Handle()
		}
		return err
	case C.GCCL_JOB_DEVCOMM:
		win, err := w.c.NewResources(uint64(j.size), uint64(j.digest))
		if g := j.gin; err == nil && g.contexts > 0 {
			var got comm.GinGot
			got, err = w.c.OpenGin(win, comm.GinWant{Contexts: int(g.contexts), Signals: int(g.signals), Counters: int(g.counters),
				Depth: int(g.depth), OwnHeader: g.own_header != 0, Format: int(g.format), ContextBytes: int(g.context_bytes),
				Told: 128 * uint64(g.told)})
			if err != nil {
				_ = w.c.DeregisterWindow(win)
			}
			g._type = C.int32_t(got.Type)
			if got.Contexts != nil {
				g.handles = got.Contexts.Contexts()
			}
			if got.Direct {
				g.direct = 1
			}
		}
		if err == nil && j.out != nil {
			*j.out = win.Pointer()
		}
		return err
	case C.GCCL_JOB_SUSPEND:
		return w.c.Suspend(int(j.flags))
	case C.GCCL_JOB_RESUME:
		return w.c.Resume()
	}
	return argument("run", "job kind %d is unknown", int(j.kind))
}

// publish hands out a child when it is complete.
func publish(j *C.gccl_job, err error) error {
	if err == nil && j.out != nil && j.comm != nil {
		*j.out = unsafe.Pointer(j.comm)
	}
	return err
}

func jobIDs(j *C.gccl_job) [][bootstrap.IDBytes]byte {
	if j.ids == nil || j.nids < 1 {
		return nil
	}
	ids := make([][bootstrap.IDBytes]byte, int(j.nids))
	all := unsafe.Slice((*byte)(unsafe.Pointer(j.ids)), int(j.nids)*bootstrap.IDBytes)
	for i := range ids {
		copy(ids[i][:], all[i*bootstrap.IDBytes:])
	}
	return ids
}
