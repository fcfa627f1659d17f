/* Drives the core through capi/core.h as the front does: ranks as jobs of one run call, a launch table miss, memory, and
 * what must be refused. Prints one line per failed check; the exit status is their number. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core.h"

static int bad;
#define CHECK(cond, ...) do { if (!(cond)) { bad++; printf("line %d: %s: ", __LINE__, #cond); printf(__VA_ARGS__); printf("\n"); } } while (0)

static _Atomic(int) done_calls, retired;
static void on_done(gccl_job *jobs, int32_t n, void *cookie) { (void)jobs; (void)n; (void)cookie; done_calls++; }
static int32_t on_quiesce(struct ncclComm *c, uint64_t ns) { (void)c; (void)ns; return 0; }
static int32_t on_interrupted(void) { return -1; }
static void on_retire(struct ncclComm *c) { (void)c; retired++; }
static gccl_front_api front = {.abi = GCCL_CORE_ABI, .size = sizeof front, .done = on_done, .quiesce = on_quiesce, .retire = on_retire, .interrupted = on_interrupted,
                               .path = "/none/libgccl.so", .simd = "c"};

enum { N = 4, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, IN_PROGRESS = 7 };

static void undefined(gccl_config *c) {
  memset(c, 0, sizeof *c);
  int32_t *v = &c->blocking;
  for (int i = 0; i < 16; i++) v[i] = INT32_MIN;
}

int main(int argc, char **argv) {
  void *lib = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!lib) { printf("dlopen: %s\n", dlerror()); return 99; }
  gcclgo_open_fn open_core = (gcclgo_open_fn)dlsym(lib, "gcclgo_open");
  gccl_core_api core = {0};
  CHECK(open_core(&front, &core) == 0 && core.abi == GCCL_CORE_ABI && core.run, "open");
  CHECK(open_core(NULL, &core) == INVALID_ARGUMENT, "open without a front");
  char text[GCCL_TEXT];
  gccl_config cfg;
  undefined(&cfg);
  CHECK(core.config_resolve(&cfg, NULL, text) == 0 && cfg.blocking == 1 && cfg.max_ctas == 64, "%s", text);
  gccl_config wrong;
  undefined(&wrong);
  wrong.blocking = 7;
  CHECK(core.config_resolve(&wrong, NULL, text) == INVALID_ARGUMENT && strstr(text, "blocking is 7"), "%s", text);

  unsigned char id[128];
  CHECK(core.get_unique_id(id, text) == 0, "%s", text);
  gccl_job jobs[N];
  memset(jobs, 0, sizeof jobs);
  struct ncclComm *comms[N];
  for (int r = 0; r < N; r++) {
    comms[r] = calloc(1, sizeof *comms[r]);
    comms[r]->magic = GCCL_COMM_MAGIC;
    comms[r]->version = GCCL_COMM_VERSION;
    comms[r]->state = GCCL_COMM_INIT;
    jobs[r] = (gccl_job){.kind = GCCL_JOB_INIT, .comm = comms[r], .config = cfg, .nranks = N, .rank = r, .nids = 1, .ids = id};
  }
  CHECK(core.run(jobs, N, 1, NULL) == 0, "%s", jobs[0].text);
  for (int r = 0; r < N; r++) {
    struct ncclComm *c = comms[r];
    CHECK(c->state == GCCL_COMM_READY && c->rank == r && c->nranks == N && c->one_process, "rank %d state %u: %s", r, c->state, jobs[r].text);
    if (c->state != GCCL_COMM_READY) return bad;
    const gccl_area *a = (const gccl_area *)c->peers[(r + 1) % N].area;
    CHECK(a->magic == GCCL_SHARED_MAGIC && a->rank == (r + 1) % N && c->sleepers == (void *)&((gccl_area *)c->peers[0].area)->sleepers, "peer area");
    for (int cls = 0; cls < 2; cls++)
      for (int coll = 0; coll < GCCL_SEND_RECV; coll++) CHECK(core.plan(c, coll, cls, 0, text) == 0, "%s", text);
    int plans = 0;
    const gccl_table *table = c->table;
    for (uint32_t i = 0; table && i <= table->mask; i++) {
      const gccl_lowered *p = table->entry[i].plan;
      if (!p) continue;
      plans++;
      CHECK(p->magic == GCCL_LOWERED_MAGIC && p->nranks == N && p->rank == r && p->size == sizeof *p + p->nops * sizeof(gccl_lop) + p->nedges * sizeof(gccl_edge), "plan");
    }
    CHECK(plans == 2 * GCCL_SEND_RECV, "%d plans", plans);
    CHECK(c->limit[GCCL_ALL_REDUCE][0] == c->geo.eager_bytes && c->limit[GCCL_ALL_REDUCE][1] == UINT64_MAX, "limits");
    CHECK(core.plan(c, GCCL_NUM_COLLS, 0, 0, text) != 0, "a plan of no collective");
  }
  void *mem = NULL;
  CHECK(core.mem_alloc(&mem, 10000, text) == 0 && mem, "%s", text);
  if (mem) {
    memset(mem, 7, 10000);
    CHECK(core.mem_free((char *)mem + 4096, text) == INVALID_ARGUMENT, "free of an inner pointer");
    CHECK(core.mem_free(mem, text) == 0, "%s", text);
    CHECK(core.mem_free(mem, text) == INVALID_ARGUMENT && strstr(text, "ncclMemAlloc"), "double free: %s", text);
  }
  gccl_config simd = cfg;
  memcpy(simd.simd, "neon", 5);
  gccl_job lacking = {.kind = GCCL_JOB_INIT, .comm = calloc(1, sizeof(struct ncclComm)), .config = simd, .nranks = 1, .nids = 1, .ids = id};
  CHECK(core.get_unique_id(id, text) == 0, "%s", text);
  CHECK(core.run(&lacking, 1, 1, NULL) == INVALID_USAGE && strstr(lacking.text, "GCCL_SIMD is neon: this CPU has c"), "%s", lacking.text);
  gccl_job refused = {.kind = GCCL_JOB_INIT, .comm = calloc(1, sizeof(struct ncclComm)), .config = cfg, .nranks = 2, .rank = 2, .nids = 1, .ids = id};
  CHECK(core.run(&refused, 1, 1, NULL) == INVALID_ARGUMENT && strstr(refused.text, "ncclCommInitRank: rank 2 of 2"), "%s", refused.text);
  for (int r = 0; r < N; r++) jobs[r] = (gccl_job){.kind = GCCL_JOB_DESTROY, .comm = comms[r]};
  CHECK(core.run(jobs, N, 0, NULL) == IN_PROGRESS, "background");
  for (int i = 0; i < 1000 && !done_calls; i++) usleep(10000);
  CHECK(done_calls == 1 && retired == N, "done %d retired %d", done_calls, retired);
  for (int r = 0; r < N; r++) {
    CHECK(jobs[r].rc == 0 && comms[r]->state == GCCL_COMM_DEAD, "rank %d: %s", r, jobs[r].text);
    CHECK(core.plan(comms[r], 0, 0, 0, text) == INVALID_ARGUMENT, "a dead communicator is planned for");
  }
  int32_t n = 0;
  CHECK(core.param_key(0, text, sizeof text, &n) == 0 && n > 0, "parameters");
  int32_t index = -1, type = 0;
  CHECK(core.param_find("NCCL_DEBUG", &index, text) == 0, "%s", text);
  CHECK(core.param_get(index, &type, NULL, text, sizeof text, NULL, text) == 0 && type, "type %d", type);
  CHECK(core.param_find("NO_SUCH", &index, text) == INVALID_ARGUMENT, "unknown parameter");
  return bad;
}
