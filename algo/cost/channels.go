package cost

// Channels is what a search of a topology found: rings of one host, and what each of them carries.
type Channels struct {
	N              int
	Inside, Beyond float64 // bytes a nanosecond of each, between ranks of a host and from and to the network
	Latency        float64 // of the network, added to the machine's
}

// WithChannels is a machine whose links carry what channels do. Each of ranks of a host sends on every channel; a channel enters
// and leaves the host once. A byte that moves is a source and a destination, and takes the link's time once.
func (m *Machine) WithChannels(name string, ranks int, c Channels) *Machine {
	out := *m
	out.Name, out.Channels, out.ChannelRate = name, c.N, c.Inside
	if rate := float64(c.N) * c.Inside; rate > 0 {
		out.User, out.Scratch = Level(1/(2*rate)), Level(1/(2*rate))
	}
	if rate := float64(c.N) * c.Beyond; rate > 0 {
		out.Between.Rate = rate / float64(ranks)
	}
	out.Between.Latency += c.Latency
	return &out
}
