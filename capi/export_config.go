package main

// #include "core.h"
import "C"

import (
	"unsafe"

	"github.com/gccl/gccl/comm"
)

// configOf and putConfig are the two directions of gccl_config ↔ comm.Config.
func configOf(c *C.gccl_config) comm.Config {
	return comm.Config{
		Blocking: int32(c.blocking), CGAClusterSize: int32(c.cga_cluster_size), MinCTAs: int32(c.min_ctas), MaxCTAs: int32(c.max_ctas),
		SplitShare: int32(c.split_share), ShrinkShare: int32(c.shrink_share), TrafficClass: int32(c.traffic_class), CollnetEnable: int32(c.collnet_enable),
		CTAPolicy: int32(c.cta_policy), NvlsCTAs: int32(c.nvls_ctas), NChannelsPerNetPeer: int32(c.nchannels_per_net_peer), NvlinkCentricSched: int32(c.nvlink_centric_sched),
		GraphUsageMode: int32(c.graph_usage_mode), NumRmaCtx: int32(c.num_rma_ctx), MaxP2pPeers: int32(c.max_p2p_peers), GraphStreamOrdering: int32(c.graph_stream_ordering),
		NetName: fixedText(&c.net_name[0], len(c.net_name)), CommName: fixedText(&c.comm_name[0], len(c.comm_name)),
		DeviceKind: int32(c.device_kind), SIMD: fixedText(&c.simd[0], len(c.simd)),
	}
}

func putConfig(c *C.gccl_config, g *comm.Config) {
	c.blocking, c.cga_cluster_size, c.min_ctas, c.max_ctas = C.int32_t(g.Blocking), C.int32_t(g.CGAClusterSize), C.int32_t(g.MinCTAs), C.int32_t(g.MaxCTAs)
	c.split_share, c.shrink_share, c.traffic_class, c.collnet_enable = C.int32_t(g.SplitShare), C.int32_t(g.ShrinkShare), C.int32_t(g.TrafficClass), C.int32_t(g.CollnetEnable)
	c.cta_policy, c.nvls_ctas, c.nchannels_per_net_peer, c.nvlink_centric_sched = C.int32_t(g.CTAPolicy), C.int32_t(g.NvlsCTAs), C.int32_t(g.NChannelsPerNetPeer), C.int32_t(g.NvlinkCentricSched)
	c.graph_usage_mode, c.num_rma_ctx, c.max_p2p_peers, c.graph_stream_ordering = C.int32_t(g.GraphUsageMode), C.int32_t(g.NumRmaCtx), C.int32_t(g.MaxP2pPeers), C.int32_t(g.GraphStreamOrdering)
	putText(&c.net_name[0], len(c.net_name), g.NetName)
	putText(&c.comm_name[0], len(c.comm_name), g.CommName)
	putText(&c.simd[0], len(c.simd), g.SIMD)
}

// fixedText reads a text that ends at a NUL or at the end of its room.
func fixedText(p *C.char, room int) string {
	b := unsafe.Slice((*byte)(unsafe.Pointer(p)), room)
	for i, v := range b {
		if v == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
