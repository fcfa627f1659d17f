package topo

// maxChannels is the largest number of execution channels (NCCL 2.30.7); a search finds at most half, which are doubled.
const maxChannels = 64
