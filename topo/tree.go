package topo

// Trees are chains inside a system: the first GPU is the top. They differ in who talks to the network.

// A balanced tree splits the traffic to the network over its first two GPUs.
var balancedTreeShape = shape{
	bothWays: true, crosses: true,
	leaveAt:    func(int) int { return 0 },
	neighbours: nextThenPrev,
}

// A split tree receives at its first GPU and sends from its second.
var splitTreeShape = shape{
	bothWays: true, crosses: true,
	leaveAt:    func(int) int { return 1 },
	neighbours: nextThenPrev,
}

// A simple tree, which is also the chain of SHARP, does both at its first GPU, over one NIC.
var treeShape = shape{
	bothWays:   true,
	leaveAt:    func(int) int { return 0 },
	neighbours: func(_, next int) []int { return []int{next} },
}

func nextThenPrev(prev, next int) []int { return []int{next, prev} }
