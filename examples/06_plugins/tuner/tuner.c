/* A tuner plugin that follows a CSV file: collective,min_bytes,max_bytes,algorithm,protocol,channels.
 *
 * It needs no header of NCCL: the table below is ncclTunerPlugin_v4. Its only rule is that it decides alike on
 * all ranks, so the file must be the same everywhere.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_USAGE = 5 }; /* ncclResult_t */
enum { LEVEL_WARN = 2, LEVEL_INFO = 3 };                   /* ncclDebugLogLevel */
enum { TUNING = 64 };                                      /* subsystem of the log */
typedef void (*logger)(int level, unsigned long flags, const char *file, int line, const char *format, ...);

typedef struct {
  const char *name;
  int (*init)(size_t nRanks, size_t nNodes, logger log, void **context);
  int (*getCollInfo)(void *context, int collType, size_t nBytes, int numPipeOps, float **collCostTable, int numAlgo, int numProto,
                     int regBuff, int *nChannels);
  int (*destroy)(void *context);
} tuner_v4;

typedef struct {
  int coll, algo, proto, channels;
  size_t min, max;
} rule;

enum { MAX_RULES = 256 };
typedef struct {
  rule rule[MAX_RULES];
  int n;
} rules;

/* Numbers of ncclFunc_t, of algorithms and of protocols. */
static const char *const colls[] = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce", NULL};
static const char *const algos[] = {"tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat", NULL};
static const char *const protos[] = {"ll", "ll128", "simple", NULL};

static int number_of(const char *word, const char *const *names) {
  for (int i = 0; names[i]; i++)
    if (!strcasecmp(word, names[i])) return i;
  return -1;
}

/* One line of the file; 0 if it makes no sense. A negative or missing limit is none. */
static int parse(const char *line, rule *r) {
  char coll[32], algo[32], proto[32];
  long long min, max;
  if (sscanf(line, " %31[^, ] , %lld , %lld , %31[^, ] , %31[^, ] , %d", coll, &min, &max, algo, proto, &r->channels) != 6) return 0;
  r->coll = number_of(coll, colls);
  r->algo = number_of(algo, algos);
  r->proto = number_of(proto, protos);
  r->min = min < 0 ? 0 : (size_t)min;
  r->max = max < 0 ? (size_t)-1 : (size_t)max;
  return r->coll >= 0 && r->algo >= 0 && r->proto >= 0 && r->channels >= 0;
}

static int init(size_t nRanks, size_t nNodes, logger log, void **context) {
  const char *path = getenv("EXAMPLE_TUNER_FILE");
  FILE *f = path ? fopen(path, "r") : NULL;
  rules *all = calloc(1, sizeof *all);
  if (!f || !all) {
    log(LEVEL_WARN, TUNING, __FILE__, __LINE__, "EXAMPLE_TUNER_FILE %s cannot be read", path ? path : "(unset)");
    if (f) fclose(f);
    free(all);
    return SYSTEM_ERROR;
  }
  char line[256];
  for (int at = 1; fgets(line, sizeof line, f); at++) {
    if (line[0] == '#' || strspn(line, " \t\r\n") == strlen(line)) continue;
    if (all->n == MAX_RULES || !parse(line, &all->rule[all->n++])) {
      log(LEVEL_WARN, TUNING, __FILE__, __LINE__, "%s line %d is no rule, or one too many: %s", path, at, line);
      fclose(f);
      free(all);
      return INVALID_USAGE;
    }
  }
  fclose(f);
  log(LEVEL_INFO, TUNING, __FILE__, __LINE__, "%d rules of %s for %zu ranks on %zu nodes", all->n, path, nRanks, nNodes);
  *context = all;
  return SUCCESS;
}

/* The first rule that fits decides: its way costs nothing. A way that cannot be taken has a cost below zero and stays so. */
static int get_coll_info(void *context, int coll, size_t bytes, int pipeOps, float **table, int nAlgos, int nProtos, int registered,
                         int *nChannels) {
  const rules *all = context;
  float *cost = (float *)table; /* [nAlgos][nProtos] in one block */
  (void)pipeOps;
  (void)registered;
  for (int i = 0; i < all->n; i++) {
    const rule *r = &all->rule[i];
    if (r->coll != coll || bytes < r->min || bytes > r->max || r->algo >= nAlgos || r->proto >= nProtos) continue;
    if (cost[r->algo * nProtos + r->proto] >= 0) {
      cost[r->algo * nProtos + r->proto] = 0;
      *nChannels = r->channels;
    }
    break;
  }
  return SUCCESS;
}

static int destroy(void *context) {
  free(context);
  return SUCCESS;
}

tuner_v4 ncclTunerPlugin_v4 = {"csv-example", init, get_coll_info, destroy};
