#define _GNU_SOURCE
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int parse_id(const char *hex, ncclUniqueId *id) {
  for (int i = 0; i < NCCL_UNIQUE_ID_BYTES; i++) {
    unsigned byte;
    if (sscanf(hex + 2 * i, "%2x", &byte) != 1) return -1;
    id->internal[i] = (char)byte;
  }
  return 0;
}

static int parse_setting(struct perf_job *job, const char *key, const char *value) {
  if (strcmp(key, "buffers") == 0) {
    static const char *const names[] = {"malloc", "register", "window"};
    for (int i = 0; i < 3; i++)
      if (strcmp(value, names[i]) == 0) {
        job->buffers = (enum perf_buffers)i;
        return 0;
      }
    return -1;
  }
  if (strcmp(key, "timeout") == 0) return (job->timeout_s = atof(value)) > 0 ? 0 : -1;
  int *flag = strcmp(key, "latency") == 0  ? &job->latency
              : strcmp(key, "stream") == 0 ? &job->host_stream
              : strcmp(key, "pin") == 0    ? &job->pin
                                           : NULL;
  if (!flag) return -1;
  *flag = atoi(value);
  return 0;
}

static int parse_case(struct perf_job *job, const char *line) {
  char coll[32], type[16], op[16];
  struct perf_case c;
  if (sscanf(line, "case %31s %15s %15s %d %zu %d %d %d %d", coll, type, op, &c.root, &c.count, &c.iterations, &c.warmup, &c.checks,
             &c.places) != 9)
    return -1;
  c.coll = perf_coll_find(coll);
  c.type = perf_type_find(type);
  c.op = perf_op_find(op);
  if (!c.coll || !c.type || c.root < 0 || c.root >= job->nranks || c.iterations < 1) return -1;
  if (c.coll->reduces && c.op == PERF_OPS) return -1;
  struct perf_case *grown = realloc(job->cases, (size_t)(job->ncases + 1) * sizeof c);
  if (!grown) return -1;
  job->cases = grown;
  job->cases[job->ncases++] = c;
  return 0;
}

int perf_job_read(struct perf_job *job, int fd, int id_known, char *why, size_t why_bytes) {
  FILE *in = fdopen(dup(fd), "r");
  char *line = NULL;
  size_t room = 0;
  int rc = -1;
  snprintf(why, why_bytes, "the control pipe ended early");
  while (in && getline(&line, &room, in) > 0) {
    char key[32], value[300];
    int bad = 0;
    line[strcspn(line, "\n")] = 0;
    if (strcmp(line, "go") == 0) {
      rc = id_known && job->ncases > 0 ? 0 : -1;
      if (rc) snprintf(why, why_bytes, "no unique id or no case came before go");
      break;
    }
    if (sscanf(line, "id %299s", value) == 1) {
      bad = strlen(value) != 2 * NCCL_UNIQUE_ID_BYTES || parse_id(value, &job->id) != 0;
      id_known = 1;
    } else if (sscanf(line, "set %31s %299s", key, value) == 2) {
      bad = parse_setting(job, key, value);
    } else {
      bad = parse_case(job, line);
    }
    if (bad) {
      snprintf(why, why_bytes, "cannot use the control line: %.200s", line);
      break;
    }
  }
  free(line);
  if (in) fclose(in);
  return rc;
}
