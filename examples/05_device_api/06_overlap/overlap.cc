/* Computation and communication in one kernel: a matrix product whose result is summed over ranks and divided between them (GEMM and reduce-scatter).
 * Some CTAs compute tiles and put each to the rank that owns it as soon as it is done; others take tiles as they arrive and add them up.
 *
 * Three processes are the ranks. The kernel does not know what carries its puts. */
#include <gccl_device/cpu.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

enum { RANKS = 3, PRODUCERS = 3, THREADS = 32, TILES = 4, ROWS = 8, COLUMNS = 16, DEPTH = 24 }; /* TILES of ROWS x COLUMNS for each rank */
enum { TILE = ROWS * COLUMNS };

#define CHECK(call)                                                                            \
  do {                                                                                         \
    ncclResult_t rc_ = (call);                                                                 \
    if (rc_ != ncclSuccess) {                                                                  \
      fprintf(stderr, "%s: %s: %s\n", #call, ncclGetErrorString(rc_), ncclGetLastError(NULL)); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

/* ---- The kernel ---- */

/* Element (i, k) of this rank's a, (k, j) of its b: small whole numbers, so that sums are exact. */
__device__ inline float a(int rank, int i, int k) { return (float)((i * 3 + k * 5 + rank) % 7 - 3); }
__device__ inline float b(int rank, int k, int j) { return (float)((k * 2 + j * 3 + rank) % 5 - 2); }

/* Tile t of rank owner's part of a·b. */
__device__ inline float element(int rank, int owner, int t, int at) {
  int i = (owner * TILES + t) * ROWS + at / COLUMNS, j = at % COLUMNS;
  float sum = 0;
  for (int k = 0; k < DEPTH; k++) sum += a(rank, i, k) * b(rank, k, j);
  return sum;
}

/* send: a place for each tile that this rank computes, [owner][tile]. arrived: the queue of what has come, [from][tile]. out: the sums, zero before.
 *
 * Tile t is computed by CTA t mod PRODUCERS, through that CTA's own context, so that CTAs do not share a queue. Signal r of a context counts
 * the tiles of rank r that have come through it; a strong signal covers all puts before it, so they count in order. */
__global__ void product(ncclWindow_t send, ncclWindow_t arrived, float *out, uint64_t launch, ncclDevComm comm) {
  ncclCoopCta cta;
  int n = comm.nRanks, thread = (int)threadIdx.x, threads = (int)blockDim.x;
  if (blockIdx.x < PRODUCERS) {
    ncclGin gin(comm, (int)blockIdx.x);
    for (int step = 1; step <= n; step++) { /* every rank begins with another one, and ends with itself */
      int owner = (comm.rank + step) % n;
      for (int t = (int)blockIdx.x; t < TILES; t += PRODUCERS) {
        size_t from = (size_t)(owner * TILES + t) * TILE * sizeof(float), to = (size_t)(comm.rank * TILES + t) * TILE * sizeof(float);
        float *tile = static_cast<float *>(ncclGetLocalPointer(send, from));
        for (int i = thread; i < TILE; i += threads) tile[i] = element(comm.rank, owner, t, i);
        gin.put(ncclTeamWorld(comm), owner, arrived, to, send, from, TILE * sizeof(float),
                ncclGin_StrongSignalInc{(ncclGinSignal_t)comm.rank}, ncclGin_None{},
                cta); /* and on with the next tile while this one travels */
      }
    }
    gin.flush(cta); /* the places may be written again by the next launch */
    return;
  }
  /* The other CTAs take the tiles of one rank each, as they come; who is late holds up nobody else. */
  int from = (int)blockIdx.x - PRODUCERS;
  for (int t = 0; t < TILES; t++) {
    ncclGin gin(comm, t % PRODUCERS);
    uint64_t each = (uint64_t)((TILES - t % PRODUCERS + PRODUCERS - 1) / PRODUCERS); /* tiles of this context in a launch */
    gin.waitSignal(cta, (ncclGinSignal_t)from, launch * each + (uint64_t)(t / PRODUCERS) + 1);
    float const *tile = static_cast<float const *>(ncclGetLocalPointer(arrived, (size_t)(from * TILES + t) * TILE * sizeof(float)));
    for (int i = thread; i < TILE; i += threads) atomicAdd(&out[t * TILE + i], tile[i]);
  }
}

/* ---- The host ---- */

struct Window {
  float *memory;
  ncclWindow_t handle;
  ncclComm_t comm;
  explicit Window(ncclComm_t c) : comm(c) {
    size_t bytes = (size_t)RANKS * TILES * TILE * sizeof(float);
    CHECK(ncclMemAlloc((void **)&memory, bytes));
    CHECK(ncclCommWindowRegister(comm, memory, bytes, &handle, NCCL_WIN_COLL_SYMMETRIC));
  }
  ~Window() {
    CHECK(ncclCommWindowDeregister(comm, handle));
    CHECK(ncclMemFree(memory));
  }
};

static void barrier(ncclComm_t comm) {
  int one = 1, all = 0;
  CHECK(ncclAllReduce(&one, &all, 1, ncclInt, ncclSum, comm, NULL));
}

static void run(ncclUniqueId id, int rank) {
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, RANKS, id, rank));
  {
    Window send(comm), arrived(comm);
    ncclDevCommRequirements requirements = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    requirements.ginConnectionType = NCCL_GIN_CONNECTION_FULL;
    requirements.ginContextCount = PRODUCERS;
    requirements.ginSignalCount = RANKS;
    ncclDevComm dev;
    CHECK(ncclDevCommCreate(comm, &requirements, &dev));
    int bad = 0;
    for (uint64_t launch = 0; launch < 3; launch++) {
      std::vector<float> out(TILES * TILE);
      gccl::cpu::Launch l(PRODUCERS + RANKS, THREADS);
      if (l.run(product, send.handle, arrived.handle, out.data(), launch, dev) != ncclSuccess) {
        fprintf(stderr, "rank %d: the kernel: %s\n", rank, l.error());
        exit(1);
      }
      for (int t = 0; t < TILES; t++)
        for (int at = 0; at < TILE; at++) {
          float want = 0;
          for (int r = 0; r < RANKS; r++) want += element(r, rank, t, at);
          bad += out[(size_t)(t * TILE + at)] != want;
        }
      barrier(comm); /* all have taken their tiles: the queue may be filled again */
    }
    if (bad) {
      fprintf(stderr, "rank %d: %d elements are wrong\n", rank, bad);
      exit(1);
    }
    if (rank == 0)
      printf("product of %d x %d by tiles, summed and divided over %d processes while it is computed: ok\n", RANKS * TILES * ROWS, COLUMNS,
             RANKS);
    CHECK(ncclDevCommDestroy(comm, &dev));
  }
  CHECK(ncclCommDestroy(comm));
}

int main() {
  int ends[2];
  if (pipe(ends)) return 1;
  for (int rank = 0; rank < RANKS; rank++) {
    if (fork()) continue;
    ncclUniqueId id;
    if (rank == 0) {
      CHECK(ncclGetUniqueId(&id));
      for (int i = 1; i < RANKS; i++)
        if (write(ends[1], &id, sizeof id) != sizeof id) exit(1);
    } else if (read(ends[0], &id, sizeof id) != sizeof id) {
      exit(1);
    }
    run(id, rank);
    exit(0);
  }
  int failed = 0;
  for (int rank = 0; rank < RANKS; rank++) {
    int status = 1;
    wait(&status);
    failed |= status != 0;
  }
  return failed;
}
