package layout

// #include "probe.h"
// enum {
//   at_event_kind = offsetof(gccl_event, kind), at_event_what = offsetof(gccl_event, what), at_event_dtype = offsetof(gccl_event, dtype),
//   at_event_red = offsetof(gccl_event, red), at_event_comm = offsetof(gccl_event, comm), at_event_call = offsetof(gccl_event, call),
//   at_event_count = offsetof(gccl_event, count), at_event_peer = offsetof(gccl_event, peer), at_event_arg = offsetof(gccl_event, arg),
//   at_event_text = offsetof(gccl_event, text),
// };
import "C"

import (
	"unsafe"

	"github.com/gccl/gccl/device/probe"
)

// Both sides see a record of the trace alike: an array of a negative length does not compile.
var (
	_ [C.sizeof_gccl_event - unsafe.Sizeof(probe.Event{})]byte
	_ [unsafe.Sizeof(probe.Event{}) - C.sizeof_gccl_event]byte
	_ [2 * C.at_event_kind]byte  = [C.at_event_kind + unsafe.Offsetof(probe.Event{}.Kind)]byte{}
	_ [2 * C.at_event_what]byte  = [C.at_event_what + unsafe.Offsetof(probe.Event{}.What)]byte{}
	_ [2 * C.at_event_dtype]byte = [C.at_event_dtype + unsafe.Offsetof(probe.Event{}.DType)]byte{}
	_ [2 * C.at_event_red]byte   = [C.at_event_red + unsafe.Offsetof(probe.Event{}.Red)]byte{}
	_ [2 * C.at_event_comm]byte  = [C.at_event_comm + unsafe.Offsetof(probe.Event{}.Comm)]byte{}
	_ [2 * C.at_event_call]byte  = [C.at_event_call + unsafe.Offsetof(probe.Event{}.CallNumber)]byte{}
	_ [2 * C.at_event_count]byte = [C.at_event_count + unsafe.Offsetof(probe.Event{}.Count)]byte{}
	_ [2 * C.at_event_peer]byte  = [C.at_event_peer + unsafe.Offsetof(probe.Event{}.Peer)]byte{}
	_ [2 * C.at_event_arg]byte   = [C.at_event_arg + unsafe.Offsetof(probe.Event{}.Arg)]byte{}
	_ [2 * C.at_event_text]byte  = [C.at_event_text + unsafe.Offsetof(probe.Event{}.Text)]byte{}
)

// Kinds of records on both sides.
var _ = [1]byte{uint8(probe.PutDone) - C.GCCL_EV_PUT_DONE: 0}
