// Kernels for the tests of device communicators, on the CPU, as a library that Python calls. Each function gives the error text, or none.
#include <gccl_device/cpu.h>

// What Python has of these structures.
extern "C" const size_t sizes[] = {sizeof(ncclDevComm), sizeof(ncclDevCommRequirements), sizeof(ncclDevResourceRequirements),
                                   sizeof(ncclCommProperties), offsetof(ncclDevComm, lsaSize),
                                   offsetof(ncclDevCommRequirements, ginConnectionType), offsetof(ncclDevCommRequirements, ginVaSignalsRequired),
                                   offsetof(ncclDevResourceRequirements, outGinCounterStart), offsetof(ncclCommProperties, railedGinType)};

template <typename... P, typename... A> static const char *launch(unsigned ctas, void (*kernel)(P...), A... args) {
  gccl::cpu::Launch l(ctas, 32);
  l.deadlineNs = 60000000000u;
  return l.run(kernel, args...) == ncclSuccess ? "" : l.error();
}

__device__ static void allReduce(ncclWindow_t in, ncclWindow_t out, size_t count, ncclDevComm const &comm) {
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x);
  barrier.sync(ncclCoopCta(), cuda::memory_order_acquire);
  for (size_t i = threadIdx.x + blockDim.x * (blockIdx.x + gridDim.x * comm.rank); i < count; i += blockDim.x * gridDim.x * comm.nRanks) {
    float sum = 0;
    for (int peer = 0; peer < comm.lsaSize; peer++) sum += static_cast<float *>(ncclGetLsaPointer(in, 0, peer))[i];
    for (int peer = 0; peer < comm.lsaSize; peer++) static_cast<float *>(ncclGetLsaPointer(out, 0, peer))[i] = sum;
  }
  barrier.sync(ncclCoopCta(), cuda::memory_order_release);
}
__global__ void byValue(ncclWindow_t in, ncclWindow_t out, size_t count, ncclDevComm comm) { allReduce(in, out, count, comm); }
__global__ void byPointer(ncclWindow_t in, ncclWindow_t out, size_t count, ncclDevComm const *comm) { allReduce(in, out, count, *comm); }

extern "C" const char *by_value(unsigned ctas, ncclWindow_t in, ncclWindow_t out, size_t count, ncclDevComm const *host) {
  return launch(ctas, byValue, in, out, count, *host);
}
extern "C" const char *by_pointer(unsigned ctas, ncclWindow_t in, ncclWindow_t out, size_t count, ncclDevComm const *device) {
  return launch(ctas, byPointer, in, out, count, device);
}

// Every rank puts its number to all and waits for all.
__global__ void gather(ncclWindow_t w, unsigned signal, ncclDevComm comm) {
  ncclGin gin(comm, 0);
  if (threadIdx.x == 0)
    for (int p = 0; p < comm.nRanks; p++)
      gin.putValue(ncclTeamWorld(comm), p, w, comm.rank * sizeof(uint64_t), (uint64_t)(100 + comm.rank), ncclGin_WeakSignalInc{signal});
  gin.waitSignal(ncclCoopCta(), signal, comm.nRanks);
  gin.flush(ncclCoopCta());
}
extern "C" const char *gin_gather(ncclWindow_t w, unsigned signal, ncclDevComm const *host) { return launch(1, gather, w, signal, *host); }

__global__ void exchange(double const *send, double *recv, ncclLLA2AHandle handle, ncclDevComm comm) {
  ncclCoopCta cta;
  ncclLLA2ASession<ncclCoopCta> a2a(cta, comm, ncclTeamLsa(comm), handle, blockIdx.x, comm.lsaSize);
  for (int peer = cta.thread_rank(); peer < comm.lsaSize; peer += cta.size()) a2a.send(peer, comm.lsaRank, send[peer]);
  for (int peer = cta.thread_rank(); peer < comm.lsaSize; peer += cta.size()) recv[peer] = a2a.recv<double>(peer);
  a2a.endEpoch(cta);
}
extern "C" const char *ll_exchange(double const *send, double *recv, ncclLLA2AHandle const *handle, ncclDevComm const *host) {
  return launch(1, exchange, send, recv, *handle, *host);
}
