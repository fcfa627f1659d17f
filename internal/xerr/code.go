package xerr

import "strconv"

// Code is a result code with the numbers of ncclResult_t
// (nccl.h of NCCL 2.30.7, checked 2026-11).
//
// A Code is itself an error, so errors.Is(err, xerr.Timeout) asks for the code
// of err or of anything it wraps.
type Code int

// The result codes, in the order and with the numbers of the C enum.
const (
	Success         Code = 0
	UnhandledCuda   Code = 1
	System          Code = 2
	Internal        Code = 3
	InvalidArgument Code = 4
	InvalidUsage    Code = 5
	Remote          Code = 6
	InProgress      Code = 7
	Timeout         Code = 8
)

// UnknownText is what every number outside the list is called.
const UnknownText = "unknown result code"

// Entry is one line of the list of result codes.
type Entry struct {
	Code Code
	Name string // name of the C enumerator
	Text string // what ncclGetErrorString answers
}

// entries is the only list of result texts; the C front gets its table from
// here through the generator.
var entries = [...]Entry{
	{Success, "ncclSuccess", "no error"},
	{UnhandledCuda, "ncclUnhandledCudaError", "a CUDA call failed"},
	{System, "ncclSystemError", "a system call failed"},
	{Internal, "ncclInternalError", "internal error of the library"},
	{InvalidArgument, "ncclInvalidArgument", "invalid argument"},
	{InvalidUsage, "ncclInvalidUsage", "invalid usage"},
	{Remote, "ncclRemoteError", "a peer process ended or the network failed"},
	{InProgress, "ncclInProgress", "operation in progress"},
	{Timeout, "ncclTimeout", "operation did not finish in time"},
}

// Entries returns the list of result codes in numeric order.
func Entries() []Entry {
	return append([]Entry(nil), entries[:]...)
}

// String returns the text of the code; any integer has one.
func (c Code) String() string {
	if c < 0 || int(c) >= len(entries) {
		return UnknownText
	}
	return entries[c].Text
}

// Name returns the name of the C enumerator, or the number as text.
func (c Code) Name() string {
	if c < 0 || int(c) >= len(entries) {
		return "ncclResult_t " + strconv.Itoa(int(c))
	}
	return entries[c].Name
}

// Error makes a Code usable as the target of errors.Is.
func (c Code) Error() string { return c.String() }
