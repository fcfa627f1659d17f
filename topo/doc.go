// Package topo owns the machine: what it consists of and how ranks reach each other. It must not know a device, a network or
// cgo.
//
// Nothing is here yet: in host mode all ranks of a communicator share one memory (package comm proves it), and algo/tune
// chooses by size alone.
package topo
