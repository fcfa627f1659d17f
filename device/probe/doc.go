// Package probe owns the trace of a process (GCCL_TRACE): it turns the records that the data path leaves in its rings
// (device/layout/probe.h) into a file of Chrome's trace format, which Perfetto reads, and merges the files of several processes.
//
// The format: "Trace Event Format", Google, 2016 (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU):
// complete events (X), async pairs (b, e) and metadata (M); times in microseconds.
//
// It must not know who fills the rings or how a communicator comes to be. It has no C.
package probe

// Kind is enum gccl_event_kind.
type Kind uint8

// The kinds of records.
const (
	Call Kind = iota + 1
	Called
	Group
	Grouped
	Plan
	Planned
	Run
	Step
	Done
	Put
	PutDone
)

// Event is gccl_event. device/layout proves that both are the same.
type Event struct {
	NS                uint64
	Kind              Kind
	What, DType, Red  uint8
	Comm              uint32
	CallNumber, Count uint64
	Peer              int32
	Arg               uint32
	Text              [24]byte
}

// Steps that are not ops of a plan: enum gccl_trace_wait. Ops are enum gccl_kind.
const (
	opReduce, opPut, opGet, opSignal, opWait = 0, 1, 2, 3, 4

	waitGuard, waitPeers, waitMessage, stepLaunch = 16, 17, 18, 19
)

// enum gccl_op_kind.
const (
	doColl, doSend, doRecv, doCopy, doPut, doWaitSignal = 0, 1, 2, 3, 4, 5
)

var (
	collNames = []string{"all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce", "all-to-all", "gather", "scatter"}
	typeNames = []string{"int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"}
	redNames  = []string{"sum", "prod", "max", "min", "avg", "premulsum"}
)

func nameIn(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return "?"
	}
	return names[i]
}

func (e *Event) op() int          { return int(e.What >> 4) }
func (e *Event) collName() string { return nameIn(collNames, int(e.What&15)) }

// callName is the public function of a call. A broadcast in place is a broadcast, and a put of nothing is a signal.
func (e *Event) callName() string {
	switch e.op() {
	case doSend:
		return "ncclSend"
	case doRecv:
		return "ncclRecv"
	case doPut:
		if e.Count == 0 {
			return "ncclSignal"
		}
		return "ncclPutSignal"
	case doWaitSignal:
		return "ncclWaitSignal"
	}
	return "nccl" + nameIn([]string{"AllReduce", "ReduceScatter", "AllGather", "Broadcast", "Reduce", "AlltoAll", "Gather", "Scatter"}, int(e.What&15))
}

func (e *Event) text() string {
	for i, c := range e.Text {
		if c == 0 {
			return string(e.Text[:i])
		}
	}
	return string(e.Text[:])
}

// sideBySide says whether operations of this kind overlap on their communicator: all but collectives of the host executor may. On
// CUDA a group's operations are launched together.
func (e *Event) sideBySide() bool { return e.op() != doColl || e.text() == leader }

const leader = "leader" // in place of a method: one rank's kernel does the work of all
