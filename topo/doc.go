// Package topo owns the machine: what it consists of, how ranks reach each other, and which rings, trees and NVLS heads use
// it best. It must not know a device, a network, the environment or cgo: it works on descriptions.
//
// Three forms of one machine follow each other:
//
//	Machine   what a topology file says: CPUs, PCI devices, GPUs, NICs; attributes may be unknown   machine.go
//	System    the graph: nodes, directed links with a bandwidth, ranks                              system.go, build.go
//	Report    paths, channels, rings and trees over nodes: what users and the tuner read            report.go
//
// The way through the package:
//
//	Read(file, data) (*Machine, error)              NCCL's XML, and RCCL's; Machine.WriteXML is the way back
//	Build(machine, options) (*System, error)        refuses what is unknown and needed, by file, line and element
//	Search(system, options) *Decision               paths, ring, tree and NVLS channels
//	Decision.Report() *Report                       for people, the tuner and gccl-topo search --json
//	NewJob(orders of all nodes) (*Job, error)       rings and trees over nodes, after Agree
//	ReadGraphs, WriteGraphs                         graph files
//
// Discovery, in packages under this one, fills a Machine.
package topo
