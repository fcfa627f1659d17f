// Package cost owns what things cost on a machine: the few numbers that the simulator and the tuner compute times from, their
// text form, and the machines that are built in. Times are nanoseconds, rates bytes a nanosecond (10^9 a second).
//
// It must not know plans: what an operation consists of is told by its users.
package cost

// Link is what passes between two ranks cost.
type Link struct {
	Latency float64 // from the store of a word, or from the end of a transfer, until the peer sees it
	Gap     float64 // of the sender's time for each message, besides its bytes
	Rate    float64 // bytes a nanosecond of one rank's share; 0: as fast as the sender stores
}

// Proto is a way to carry data with its flags.
type Proto struct {
	Name    string
	Latency float64 // part of a link's latency that is left
	Rate    float64 // part of a link's rate that is left
}

// Simple is the protocol that every machine has: data, then a flag.
var Simple = Proto{Name: "simple", Latency: 1, Rate: 1}

// Machine is what the ranks run on. Its numbers are the same on all ranks: choices are made from them.
type Machine struct {
	Name string
	// CPUs is how many processors the ranks of a clique share. 0: every rank has its own.
	CPUs int
	// Call is what a call costs outside its plan, Op an op that moves data besides its bytes, Poll a look at a peer's step, Signal a
	// signal on an edge.
	Call, Op, Poll, Signal float64
	// Switch is what it costs that a processor goes on with another of its ranks. It is paid for one that cannot go on, too, so a signal
	// takes as many switches as a processor has other ranks, at most.
	Switch float64
	// User is nanoseconds a byte of a source, wherever it is, and of a destination in a user's buffer; Scratch of a destination where
	// another processor has looked: its cache lines have to come back from there. Both by how many bytes of user buffers the ranks of a
	// clique have together: caches end somewhere.
	User, Scratch Curve
	// Inside a clique bytes are loaded and stored by the ranks' own time. Between cliques a rank's share of the network carries them.
	Inside, Between Link
	Fabric          Fabric
	// Stage and Eager are the bytes of a rank's scratch and of a slot for small messages.
	Stage, Eager int64
	Protos       []Proto
	// Channels is the largest number of channels, ChannelRate what one of them carries; 0: one channel carries all.
	Channels    int
	ChannelRate float64
}

// Share is how much longer work takes because processors are shared.
func (m *Machine) Share(ranks int) float64 {
	if m.CPUs == 0 || ranks <= m.CPUs {
		return 1
	}
	return float64(ranks) / float64(m.CPUs)
}

// Hop is the latency of a signal inside a clique of so many ranks.
func (m *Machine) Hop(ranks int) float64 { return m.Inside.Latency + (m.Share(ranks)-1)*m.Switch }

// Work is the time of an op on references of a number of bytes each, of the two kinds.
func (m *Machine) Work(bytes float64, user, scratch int, footprint float64) float64 {
	return m.Op + bytes*(float64(user)*m.User.At(footprint)+float64(scratch)*m.Scratch.At(footprint))
}
