// Package discover owns what can be learnt about this machine while it runs: PCI tree, NUMA nodes, CPUs, GPUs and their links, network
// devices. It asks small interfaces (Sources), so that tests run on recorded machines. What cannot be learnt is unknown and noted
// with the reason; it is never an error and never a guess.
//
// It must not know what the facts are used for, a communicator, or how to talk to a device.
package discover
