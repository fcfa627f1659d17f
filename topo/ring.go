package topo

// A ring visits all GPUs and goes back to the first; between systems its last GPU sends to the network.
var ringShape = shape{
	closes: true, crosses: true,
	leaveAt:    func(gpus int) int { return gpus - 1 },
	neighbours: func(prev, next int) []int { return []int{prev, next} },
}
