package layout

/*
#include "lowered.h"
#include "shared.h"

enum {
  at_gccl_affine_base = offsetof(gccl_affine, base),
  at_gccl_affine_i = offsetof(gccl_affine, i),
  at_gccl_affine_j = offsetof(gccl_affine, j),
  at_gccl_affine_mod = offsetof(gccl_affine, mod),
  at_gccl_ref_space = offsetof(gccl_ref, space),
  at_gccl_ref_partial = offsetof(gccl_ref, partial),
  at_gccl_ref_edge = offsetof(gccl_ref, edge),
  at_gccl_ref_count = offsetof(gccl_ref, count),
  at_gccl_ref_rank = offsetof(gccl_ref, rank),
  at_gccl_ref_chunk = offsetof(gccl_ref, chunk),
  at_gccl_lop_kind = offsetof(gccl_lop, kind),
  at_gccl_lop_when = offsetof(gccl_lop, when),
  at_gccl_lop_sync = offsetof(gccl_lop, sync),
  at_gccl_lop_flags = offsetof(gccl_lop, flags),
  at_gccl_lop_nsrc = offsetof(gccl_lop, nsrc),
  at_gccl_lop_ndst = offsetof(gccl_lop, ndst),
  at_gccl_lop_edge = offsetof(gccl_lop, edge),
  at_gccl_lop_step = offsetof(gccl_lop, step),
  at_gccl_lop_n = offsetof(gccl_lop, n),
  at_gccl_lop_jump = offsetof(gccl_lop, jump),
  at_gccl_lop_peer = offsetof(gccl_lop, peer),
  at_gccl_lop_src = offsetof(gccl_lop, src),
  at_gccl_lop_dst = offsetof(gccl_lop, dst),
  at_gccl_edge_peer = offsetof(gccl_edge, peer),
  at_gccl_edge_slots = offsetof(gccl_edge, slots),
  at_gccl_edge_out = offsetof(gccl_edge, out),
  at_gccl_edge_index = offsetof(gccl_edge, index),
  at_gccl_edge_place = offsetof(gccl_edge, place),
  at_gccl_lowered_magic = offsetof(gccl_lowered, magic),
  at_gccl_lowered_version = offsetof(gccl_lowered, version),
  at_gccl_lowered_size = offsetof(gccl_lowered, size),
  at_gccl_lowered_coll = offsetof(gccl_lowered, coll),
  at_gccl_lowered_split = offsetof(gccl_lowered, split),
  at_gccl_lowered_eager = offsetof(gccl_lowered, eager),
  at_gccl_lowered_needs = offsetof(gccl_lowered, needs),
  at_gccl_lowered_nranks = offsetof(gccl_lowered, nranks),
  at_gccl_lowered_rank = offsetof(gccl_lowered, rank),
  at_gccl_lowered_root = offsetof(gccl_lowered, root),
  at_gccl_lowered_send_parts = offsetof(gccl_lowered, send_parts),
  at_gccl_lowered_recv_parts = offsetof(gccl_lowered, recv_parts),
  at_gccl_lowered_steps = offsetof(gccl_lowered, steps),
  at_gccl_lowered_nops = offsetof(gccl_lowered, nops),
  at_gccl_lowered_nedges = offsetof(gccl_lowered, nedges),
  at_gccl_lowered_method = offsetof(gccl_lowered, method),
};
*/
import "C"

import (
	"unsafe"

	"github.com/gccl/gccl/algo/plan"
)

// The offsets that the C compiler gives must be those of the Go mirror, the numbers of lowered.h those of this
// package and of algo/plan: a difference other than zero does not compile.
var (
	_ [unsafe.Offsetof(Affine{}.Base) - C.at_gccl_affine_base]struct{}
	_ [C.at_gccl_affine_base - unsafe.Offsetof(Affine{}.Base)]struct{}
	_ [unsafe.Offsetof(Affine{}.I) - C.at_gccl_affine_i]struct{}
	_ [C.at_gccl_affine_i - unsafe.Offsetof(Affine{}.I)]struct{}
	_ [unsafe.Offsetof(Affine{}.J) - C.at_gccl_affine_j]struct{}
	_ [C.at_gccl_affine_j - unsafe.Offsetof(Affine{}.J)]struct{}
	_ [unsafe.Offsetof(Affine{}.Mod) - C.at_gccl_affine_mod]struct{}
	_ [C.at_gccl_affine_mod - unsafe.Offsetof(Affine{}.Mod)]struct{}

	_ [unsafe.Offsetof(Ref{}.Space) - C.at_gccl_ref_space]struct{}
	_ [C.at_gccl_ref_space - unsafe.Offsetof(Ref{}.Space)]struct{}
	_ [unsafe.Offsetof(Ref{}.Partial) - C.at_gccl_ref_partial]struct{}
	_ [C.at_gccl_ref_partial - unsafe.Offsetof(Ref{}.Partial)]struct{}
	_ [unsafe.Offsetof(Ref{}.Edge) - C.at_gccl_ref_edge]struct{}
	_ [C.at_gccl_ref_edge - unsafe.Offsetof(Ref{}.Edge)]struct{}
	_ [unsafe.Offsetof(Ref{}.Count) - C.at_gccl_ref_count]struct{}
	_ [C.at_gccl_ref_count - unsafe.Offsetof(Ref{}.Count)]struct{}
	_ [unsafe.Offsetof(Ref{}.Rank) - C.at_gccl_ref_rank]struct{}
	_ [C.at_gccl_ref_rank - unsafe.Offsetof(Ref{}.Rank)]struct{}
	_ [unsafe.Offsetof(Ref{}.Chunk) - C.at_gccl_ref_chunk]struct{}
	_ [C.at_gccl_ref_chunk - unsafe.Offsetof(Ref{}.Chunk)]struct{}

	_ [unsafe.Offsetof(Op{}.Kind) - C.at_gccl_lop_kind]struct{}
	_ [C.at_gccl_lop_kind - unsafe.Offsetof(Op{}.Kind)]struct{}
	_ [unsafe.Offsetof(Op{}.When) - C.at_gccl_lop_when]struct{}
	_ [C.at_gccl_lop_when - unsafe.Offsetof(Op{}.When)]struct{}
	_ [unsafe.Offsetof(Op{}.Sync) - C.at_gccl_lop_sync]struct{}
	_ [C.at_gccl_lop_sync - unsafe.Offsetof(Op{}.Sync)]struct{}
	_ [unsafe.Offsetof(Op{}.Flags) - C.at_gccl_lop_flags]struct{}
	_ [C.at_gccl_lop_flags - unsafe.Offsetof(Op{}.Flags)]struct{}
	_ [unsafe.Offsetof(Op{}.NSrc) - C.at_gccl_lop_nsrc]struct{}
	_ [C.at_gccl_lop_nsrc - unsafe.Offsetof(Op{}.NSrc)]struct{}
	_ [unsafe.Offsetof(Op{}.NDst) - C.at_gccl_lop_ndst]struct{}
	_ [C.at_gccl_lop_ndst - unsafe.Offsetof(Op{}.NDst)]struct{}
	_ [unsafe.Offsetof(Op{}.Edge) - C.at_gccl_lop_edge]struct{}
	_ [C.at_gccl_lop_edge - unsafe.Offsetof(Op{}.Edge)]struct{}
	_ [unsafe.Offsetof(Op{}.Step) - C.at_gccl_lop_step]struct{}
	_ [C.at_gccl_lop_step - unsafe.Offsetof(Op{}.Step)]struct{}
	_ [unsafe.Offsetof(Op{}.N) - C.at_gccl_lop_n]struct{}
	_ [C.at_gccl_lop_n - unsafe.Offsetof(Op{}.N)]struct{}
	_ [unsafe.Offsetof(Op{}.Jump) - C.at_gccl_lop_jump]struct{}
	_ [C.at_gccl_lop_jump - unsafe.Offsetof(Op{}.Jump)]struct{}
	_ [unsafe.Offsetof(Op{}.Peer) - C.at_gccl_lop_peer]struct{}
	_ [C.at_gccl_lop_peer - unsafe.Offsetof(Op{}.Peer)]struct{}
	_ [unsafe.Offsetof(Op{}.Src) - C.at_gccl_lop_src]struct{}
	_ [C.at_gccl_lop_src - unsafe.Offsetof(Op{}.Src)]struct{}
	_ [unsafe.Offsetof(Op{}.Dst) - C.at_gccl_lop_dst]struct{}
	_ [C.at_gccl_lop_dst - unsafe.Offsetof(Op{}.Dst)]struct{}

	_ [unsafe.Offsetof(Edge{}.Peer) - C.at_gccl_edge_peer]struct{}
	_ [C.at_gccl_edge_peer - unsafe.Offsetof(Edge{}.Peer)]struct{}
	_ [unsafe.Offsetof(Edge{}.Slots) - C.at_gccl_edge_slots]struct{}
	_ [C.at_gccl_edge_slots - unsafe.Offsetof(Edge{}.Slots)]struct{}
	_ [unsafe.Offsetof(Edge{}.Out) - C.at_gccl_edge_out]struct{}
	_ [C.at_gccl_edge_out - unsafe.Offsetof(Edge{}.Out)]struct{}
	_ [unsafe.Offsetof(Edge{}.Index) - C.at_gccl_edge_index]struct{}
	_ [C.at_gccl_edge_index - unsafe.Offsetof(Edge{}.Index)]struct{}
	_ [unsafe.Offsetof(Edge{}.Place) - C.at_gccl_edge_place]struct{}
	_ [C.at_gccl_edge_place - unsafe.Offsetof(Edge{}.Place)]struct{}

	_ [unsafe.Offsetof(Lowered{}.Magic) - C.at_gccl_lowered_magic]struct{}
	_ [C.at_gccl_lowered_magic - unsafe.Offsetof(Lowered{}.Magic)]struct{}
	_ [unsafe.Offsetof(Lowered{}.Version) - C.at_gccl_lowered_version]struct{}
	_ [C.at_gccl_lowered_version - unsafe.Offsetof(Lowered{}.Version)]struct{}
	_ [unsafe.Offsetof(Lowered{}.Size) - C.at_gccl_lowered_size]struct{}
	_ [C.at_gccl_lowered_size - unsafe.Offsetof(Lowered{}.Size)]struct{}
	_ [unsafe.Offsetof(Lowered{}.Coll) - C.at_gccl_lowered_coll]struct{}
	_ [C.at_gccl_lowered_coll - unsafe.Offsetof(Lowered{}.Coll)]struct{}
	_ [unsafe.Offsetof(Lowered{}.Split) - C.at_gccl_lowered_split]struct{}
	_ [C.at_gccl_lowered_split - unsafe.Offsetof(Lowered{}.Split)]struct{}
	_ [unsafe.Offsetof(Lowered{}.Eager) - C.at_gccl_lowered_eager]struct{}
	_ [unsafe.Offsetof(Lowered{}.Needs) - C.at_gccl_lowered_needs]struct{}
	_ [C.at_gccl_lowered_needs - unsafe.Offsetof(Lowered{}.Needs)]struct{}
	_ [C.at_gccl_lowered_eager - unsafe.Offsetof(Lowered{}.Eager)]struct{}
	_ [unsafe.Offsetof(Lowered{}.NRanks) - C.at_gccl_lowered_nranks]struct{}
	_ [C.at_gccl_lowered_nranks - unsafe.Offsetof(Lowered{}.NRanks)]struct{}
	_ [unsafe.Offsetof(Lowered{}.Rank) - C.at_gccl_lowered_rank]struct{}
	_ [C.at_gccl_lowered_rank - unsafe.Offsetof(Lowered{}.Rank)]struct{}
	_ [unsafe.Offsetof(Lowered{}.Root) - C.at_gccl_lowered_root]struct{}
	_ [C.at_gccl_lowered_root - unsafe.Offsetof(Lowered{}.Root)]struct{}
	_ [unsafe.Offsetof(Lowered{}.SendParts) - C.at_gccl_lowered_send_parts]struct{}
	_ [C.at_gccl_lowered_send_parts - unsafe.Offsetof(Lowered{}.SendParts)]struct{}
	_ [unsafe.Offsetof(Lowered{}.RecvParts) - C.at_gccl_lowered_recv_parts]struct{}
	_ [C.at_gccl_lowered_recv_parts - unsafe.Offsetof(Lowered{}.RecvParts)]struct{}
	_ [unsafe.Offsetof(Lowered{}.Steps) - C.at_gccl_lowered_steps]struct{}
	_ [C.at_gccl_lowered_steps - unsafe.Offsetof(Lowered{}.Steps)]struct{}
	_ [unsafe.Offsetof(Lowered{}.NOps) - C.at_gccl_lowered_nops]struct{}
	_ [C.at_gccl_lowered_nops - unsafe.Offsetof(Lowered{}.NOps)]struct{}
	_ [unsafe.Offsetof(Lowered{}.NEdges) - C.at_gccl_lowered_nedges]struct{}
	_ [C.at_gccl_lowered_nedges - unsafe.Offsetof(Lowered{}.NEdges)]struct{}
	_ [unsafe.Offsetof(Lowered{}.Method) - C.at_gccl_lowered_method]struct{}
	_ [C.at_gccl_lowered_method - unsafe.Offsetof(Lowered{}.Method)]struct{}

	_ [LoweredMagic - C.GCCL_LOWERED_MAGIC]struct{}
	_ [C.GCCL_LOWERED_MAGIC - LoweredMagic]struct{}
	_ [LoweredVersion - C.GCCL_LOWERED_VERSION]struct{}
	_ [C.GCCL_LOWERED_VERSION - LoweredVersion]struct{}
	_ [MaxEdges - C.GCCL_MAX_EDGES]struct{}
	_ [C.GCCL_MAX_EDGES - MaxEdges]struct{}
	_ [MaxRefs - C.GCCL_MAX_REFS]struct{}
	_ [C.GCCL_MAX_REFS - MaxRefs]struct{}
	_ [FlagAllPeers - C.GCCL_ALL_PEERS]struct{}
	_ [C.GCCL_ALL_PEERS - FlagAllPeers]struct{}
	_ [FlagFold - C.GCCL_FOLD]struct{}
	_ [C.GCCL_FOLD - FlagFold]struct{}
	_ [FlagFinal - C.GCCL_FINAL]struct{}
	_ [C.GCCL_FINAL - FlagFinal]struct{}

	_ [int(plan.AllReduce) - C.GCCL_ALL_REDUCE]struct{}
	_ [C.GCCL_ALL_REDUCE - int(plan.AllReduce)]struct{}
	_ [int(plan.ReduceScatter) - C.GCCL_REDUCE_SCATTER]struct{}
	_ [C.GCCL_REDUCE_SCATTER - int(plan.ReduceScatter)]struct{}
	_ [int(plan.AllGather) - C.GCCL_ALL_GATHER]struct{}
	_ [C.GCCL_ALL_GATHER - int(plan.AllGather)]struct{}
	_ [int(plan.Broadcast) - C.GCCL_BROADCAST]struct{}
	_ [C.GCCL_BROADCAST - int(plan.Broadcast)]struct{}
	_ [int(plan.Reduce) - C.GCCL_REDUCE]struct{}
	_ [C.GCCL_REDUCE - int(plan.Reduce)]struct{}
	_ [int(plan.AllToAll) - C.GCCL_ALL_TO_ALL]struct{}
	_ [C.GCCL_ALL_TO_ALL - int(plan.AllToAll)]struct{}
	_ [int(plan.Gather) - C.GCCL_GATHER]struct{}
	_ [C.GCCL_GATHER - int(plan.Gather)]struct{}
	_ [int(plan.Scatter) - C.GCCL_SCATTER]struct{}
	_ [C.GCCL_SCATTER - int(plan.Scatter)]struct{}
	_ [int(plan.SendRecv) - C.GCCL_SEND_RECV]struct{}
	_ [C.GCCL_SEND_RECV - int(plan.SendRecv)]struct{}
	_ [int(plan.NumColls) - C.GCCL_NUM_COLLS]struct{}
	_ [C.GCCL_NUM_COLLS - int(plan.NumColls)]struct{}
	_ [int(plan.Send) - C.GCCL_SEND]struct{}
	_ [C.GCCL_SEND - int(plan.Send)]struct{}
	_ [int(plan.Recv) - C.GCCL_RECV]struct{}
	_ [C.GCCL_RECV - int(plan.Recv)]struct{}
	_ [int(plan.Stage) - C.GCCL_STAGE]struct{}
	_ [C.GCCL_STAGE - int(plan.Stage)]struct{}
	_ [int(plan.Out) - C.GCCL_OUT]struct{}
	_ [C.GCCL_OUT - int(plan.Out)]struct{}
	_ [int(plan.Eager) - C.GCCL_EAGER]struct{}
	_ [C.GCCL_EAGER - int(plan.Eager)]struct{}
	_ [int(plan.Slot) - C.GCCL_SLOT]struct{}
	_ [C.GCCL_SLOT - int(plan.Slot)]struct{}
	_ [int(plan.KindReduce) - C.GCCL_OP_REDUCE]struct{}
	_ [C.GCCL_OP_REDUCE - int(plan.KindReduce)]struct{}
	_ [int(plan.KindPut) - C.GCCL_OP_PUT]struct{}
	_ [C.GCCL_OP_PUT - int(plan.KindPut)]struct{}
	_ [int(plan.KindGet) - C.GCCL_OP_GET]struct{}
	_ [C.GCCL_OP_GET - int(plan.KindGet)]struct{}
	_ [int(plan.KindSignal) - C.GCCL_OP_SIGNAL]struct{}
	_ [C.GCCL_OP_SIGNAL - int(plan.KindSignal)]struct{}
	_ [int(plan.KindWait) - C.GCCL_OP_WAIT]struct{}
	_ [C.GCCL_OP_WAIT - int(plan.KindWait)]struct{}
	_ [int(plan.KindLoop) - C.GCCL_OP_LOOP]struct{}
	_ [C.GCCL_OP_LOOP - int(plan.KindLoop)]struct{}
	_ [int(plan.KindEnd) - C.GCCL_OP_END]struct{}
	_ [C.GCCL_OP_END - int(plan.KindEnd)]struct{}
	_ [int(plan.Always) - C.GCCL_ALWAYS]struct{}
	_ [C.GCCL_ALWAYS - int(plan.Always)]struct{}
	_ [int(plan.SendStaged) - C.GCCL_SEND_STAGED]struct{}
	_ [C.GCCL_SEND_STAGED - int(plan.SendStaged)]struct{}
	_ [int(plan.RecvStaged) - C.GCCL_RECV_STAGED]struct{}
	_ [C.GCCL_RECV_STAGED - int(plan.RecvStaged)]struct{}
	_ [int(plan.SyncStep) - C.GCCL_SYNC_STEP]struct{}
	_ [C.GCCL_SYNC_STEP - int(plan.SyncStep)]struct{}
	_ [int(plan.SyncData) - C.GCCL_SYNC_DATA]struct{}
	_ [C.GCCL_SYNC_DATA - int(plan.SyncData)]struct{}
	_ [int(plan.SyncCredit) - C.GCCL_SYNC_CREDIT]struct{}
	_ [C.GCCL_SYNC_CREDIT - int(plan.SyncCredit)]struct{}
)
