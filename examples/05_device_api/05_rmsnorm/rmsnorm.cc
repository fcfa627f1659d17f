/* RMSNorm fused with an all-reduce, as a layer of a tensor-parallel model ends: every rank has a partial sum of all rows; one kernel adds them up,
 * adds the residual, and normalises each row.
 *
 * The kernel is the same for a GPU. Here four threads of one process are the ranks, and each runs it on the CPU. */
#include <gccl_device/cpu.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <thread>
#include <vector>

enum { RANKS = 4, CTAS = 4, THREADS = 64, ROWS = 30, HIDDEN = 1024 };
static const float EPSILON = 1e-5f;

#define CHECK(call)                                                                            \
  do {                                                                                         \
    ncclResult_t rc_ = (call);                                                                 \
    if (rc_ != ncclSuccess) {                                                                  \
      fprintf(stderr, "%s: %s: %s\n", #call, ncclGetErrorString(rc_), ncclGetLastError(NULL)); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

/* ---- The kernel ---- */

/* out[row] = x / sqrt(mean(x²) + epsilon) · weight with x = residual[row] + sum of partial[row] over all ranks; residual[row] becomes x. Rows are
 * dealt to CTAs of all ranks in turn: whoever has a row loads its parts from all ranks, and stores the results to all. A row crosses
 * the link once for the sum and once for the result; the sum itself is never stored. */
__global__ void rmsNorm(ncclWindow_t partial, ncclWindow_t residual, ncclWindow_t out, float const *weight, int rows, ncclDevComm comm) {
  __shared__ float row[HIDDEN], squares[THREADS];
  ncclCoopCta cta;
  ncclLsaBarrierSession<ncclCoopCta> barrier(cta, comm, ncclTeamTagLsa(), blockIdx.x);
  barrier.sync(cta, cuda::memory_order_acquire); /* all partial sums are complete */
  int t = (int)threadIdx.x, n = (int)blockDim.x;
  for (int r = (int)blockIdx.x * comm.lsaSize + comm.lsaRank; r < rows; r += (int)gridDim.x * comm.lsaSize) {
    size_t at = (size_t)r * HIDDEN * sizeof(float);
    float *mine = static_cast<float *>(ncclGetLocalPointer(residual, at)), sum = 0;
    for (int i = t; i < HIDDEN; i += n) {
      float x = mine[i];
      for (int peer = 0; peer < comm.lsaSize; peer++) x += static_cast<float *>(ncclGetLsaPointer(partial, at, peer))[i];
      row[i] = x;
      sum += x * x;
    }
    squares[t] = sum;
    __syncthreads();
    for (int half = n / 2; half > 0; half /= 2) {
      if (t < half) squares[t] += squares[t + half];
      __syncthreads();
    }
    float scale = 1 / sqrtf(squares[0] / HIDDEN + EPSILON);
    for (int i = t; i < HIDDEN; i += n) {
      float y = row[i] * scale * weight[i];
      for (int peer = 0; peer < comm.lsaSize; peer++) {
        static_cast<float *>(ncclGetLsaPointer(residual, at, peer))[i] = row[i];
        static_cast<float *>(ncclGetLsaPointer(out, at, peer))[i] = y;
      }
    }
    __syncthreads(); /* before the next row takes the shared memory */
  }
  barrier.sync(cta, cuda::memory_order_release); /* all results are here */
}

/* ---- The host ---- */

struct Window {
  float *memory;
  ncclWindow_t handle;
  ncclComm_t comm;
  explicit Window(ncclComm_t c) : comm(c) {
    size_t bytes = (size_t)ROWS * HIDDEN * sizeof(float);
    CHECK(ncclMemAlloc((void **)&memory, bytes));
    CHECK(ncclCommWindowRegister(comm, memory, bytes, &handle, NCCL_WIN_COLL_SYMMETRIC));
  }
  ~Window() {
    CHECK(ncclCommWindowDeregister(comm, handle));
    CHECK(ncclMemFree(memory));
  }
};

static float partialOf(int rank, int i) { return (float)((i * 7 + rank * 13) % 31 - 15) / 8; }
static float residualOf(int i) { return (float)(i % 17 - 8) / 4; }
static float weightOf(int i) { return 1 + (float)(i % 5) / 8; }

/* The results against double precision. */
static double furthest(float const *out, float const *residual) {
  double most = 0;
  for (int r = 0; r < ROWS; r++) {
    std::vector<double> x(HIDDEN);
    double sum = 0;
    for (int i = 0; i < HIDDEN; i++) {
      x[(size_t)i] = residualOf(r * HIDDEN + i);
      for (int rank = 0; rank < RANKS; rank++) x[(size_t)i] += partialOf(rank, r * HIDDEN + i);
      sum += x[(size_t)i] * x[(size_t)i];
    }
    for (int i = 0; i < HIDDEN; i++) {
      double y = x[(size_t)i] / sqrt(sum / HIDDEN + EPSILON) * weightOf(i);
      most = fmax(most, fmax(fabs(out[r * HIDDEN + i] - y), fabs(residual[r * HIDDEN + i] - x[(size_t)i])));
    }
  }
  return most;
}

static void run(ncclUniqueId id, int rank) {
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, RANKS, id, rank));
  {
    Window partial(comm), residual(comm), out(comm);
    std::vector<float> weight(HIDDEN);
    for (int i = 0; i < ROWS * HIDDEN; i++) {
      partial.memory[i] = partialOf(rank, i);
      residual.memory[i] = residualOf(i);
    }
    for (int i = 0; i < HIDDEN; i++) weight[(size_t)i] = weightOf(i);
    ncclDevCommRequirements requirements = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    requirements.lsaBarrierCount = CTAS;
    ncclDevComm dev;
    CHECK(ncclDevCommCreate(comm, &requirements, &dev));
    gccl::cpu::Launch launch(CTAS, THREADS);
    if (launch.run(rmsNorm, partial.handle, residual.handle, out.handle, weight.data(), (int)ROWS, dev) != ncclSuccess) {
      fprintf(stderr, "rank %d: the kernel: %s\n", rank, launch.error());
      exit(1);
    }
    double away = furthest(out.memory, residual.memory);
    if (away > 1e-5) {
      fprintf(stderr, "rank %d: a result is %g away\n", rank, away);
      exit(1);
    }
    if (rank == 0) printf("RMSNorm of %d rows of %d, fused with an all-reduce over %d ranks: ok\n", ROWS, HIDDEN, RANKS);
    CHECK(ncclDevCommDestroy(comm, &dev));
  }
  CHECK(ncclCommDestroy(comm));
}

int main() {
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < RANKS; rank++) ranks.emplace_back(run, id, rank);
  for (std::thread &t : ranks) t.join();
}
