package topo

// shape is what patterns differ in. Each pattern has a file.
type shape struct {
	closes   bool // goes back to its first GPU
	heads    bool // is a head only
	bothWays bool // traffic flows both ways: both directions must be allowed
	crosses  bool // may leave by another NIC than it came by

	leaveAt    func(gpus int) int         // the step that leaves to the network
	neighbours func(prev, next int) []int // beside a switch, in the order of trying
}

var shapes = map[Pattern]*shape{
	Ring:         &ringShape,
	BalancedTree: &balancedTreeShape,
	SplitTree:    &splitTreeShape,
	Tree:         &treeShape,
	NVLS:         &nvlsShape,
}
