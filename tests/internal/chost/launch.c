/* launch.c: a supervisor starts the ranks, watches them, and after the time limit prints where each one is. The
 * supervisor never calls the library, so every rank process forks from a process that has not used it. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "conf.h"
#include "mem.h"

static const struct conf_suite *suite;

static void run_team(int first, int nlocal) {
  struct team *t = calloc(1, sizeof *t);
  t->nranks = W->nranks;
  t->nlocal = nlocal;
  t->first = first;
  int ready = mem_start(first);
  if (ready && suite->makes_comms) ready = team_init(t, t->comm, NULL);
  if (ready) {
    suite->fn(t);
    if (suite->makes_comms) team_destroy(t, t->comm);
    for (int i = 0; i < nlocal; i++) conf_at(first + i, "done");
  }
  free(t);
}

static void *thread_main(void *arg) {
  run_team((int)(intptr_t)arg, 1);
  return NULL;
}

/* How many hosts the processes are told to be on; 0 tells them nothing. */
static int hosts;

/* Runs the ranks of one process. */
static void child(int index) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (hosts) {
    char name[32];
    snprintf(name, sizeof name, "host%d", index * hosts / W->nranks);
    setenv("NCCL_HOSTID", name, 1);
  }
  if (W->launch == LAUNCH_PROCS) {
    run_team(index, 1);
  } else if (W->launch == LAUNCH_GROUP) {
    run_team(0, W->nranks);
  } else {
    pthread_t th[CONF_MAX_RANKS];
    for (int i = 0; i < W->nranks; i++)
      if (pthread_create(&th[i], NULL, thread_main, (void *)(intptr_t)i)) {
        conf_fail(i, "pthread_create failed");
        _exit(3);
      }
    for (int i = 0; i < W->nranks; i++) pthread_join(th[i], NULL);
  }
  fflush(NULL);
  exit(0); /* runs the library's exit handlers, as a user's program would */
}

static void dump(void) {
  for (int i = 0; i < W->nranks; i++) conf_note("rank %d is at: %s", i, W->at[i]);
}

/* Waits for all children; kills them all when one dies badly or the limit is over. */
static void supervise(pid_t *pid, int n, double limit) {
  double end = conf_now() + limit;
  int left = n, bad = 0;
  while (left > 0) {
    int progress = 0;
    for (int i = 0; i < n; i++) {
      int st;
      if (!pid[i] || waitpid(pid[i], &st, WNOHANG) <= 0) continue;
      pid[i] = 0;
      left--;
      progress = 1;
      if (WIFEXITED(st) && WEXITSTATUS(st) == 0) continue;
      int r = W->launch == LAUNCH_PROCS ? i : 0;
      if (WIFSIGNALED(st) && atomic_load(&W->doomed[r])) continue;
      if (!bad) dump();
      bad = 1;
      if (WIFSIGNALED(st))
        conf_fail(r, "process ended by signal %d at: %s", WTERMSIG(st), W->at[r]);
      else
        conf_fail(r, "process ended with code %d at: %s", WEXITSTATUS(st), W->at[r]);
      if (end > conf_now() + 2) end = conf_now() + 2; /* the others will wait for it in vain */
    }
    if (left && conf_now() > end) {
      if (!bad) {
        dump();
        conf_fail(0, "time limit of %.0f s is over, %d processes still run", limit, left);
      }
      for (int i = 0; i < n; i++)
        if (pid[i]) kill(pid[i], SIGKILL);
      for (int i = 0; i < n; i++)
        if (pid[i]) waitpid(pid[i], NULL, 0);
      return;
    }
    if (left && !progress) conf_sleep(0.005);
  }
}

static int usage(const char *argv0, const struct conf_suite *s) {
  fprintf(
      stderr,
      "usage: %s --ranks N --launch threads|procs|group --suite NAME [--hosts N] [--seed S] [--limit SECONDS] [--memory host|cuda] [--null "
      "legacy|thread]\nsuites:",
      argv0);
  for (; s->name; s++) fprintf(stderr, " %s", s->name);
  fprintf(stderr, "\n");
  return 2;
}

static int make_world(int nranks, int launch, uint64_t seed) {
  W = mmap(NULL, sizeof *W, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (W == MAP_FAILED) return 0;
  W->nranks = nranks;
  W->launch = launch;
  W->seed = seed;
  pthread_barrierattr_t a;
  pthread_barrierattr_init(&a);
  pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
  return pthread_barrier_init(&W->barrier, &a, launch == LAUNCH_GROUP ? 1u : (unsigned)nranks) == 0;
}

int conf_main(int argc, char **argv, const struct conf_suite *suites) {
  int nranks = 2, launch = LAUNCH_THREADS;
  double limit = 60;
  uint64_t seed = 1;
  const char *name = NULL;
  for (int i = 1; i + 1 < argc; i += 2) {
    const char *o = argv[i], *v = argv[i + 1];
    if (!strcmp(o, "--ranks"))
      nranks = atoi(v);
    else if (!strcmp(o, "--seed"))
      seed = strtoull(v, NULL, 0);
    else if (!strcmp(o, "--limit"))
      limit = atof(v);
    else if (!strcmp(o, "--suite"))
      name = v;
    else if (!strcmp(o, "--hosts"))
      hosts = atoi(v);
    else if (!strcmp(o, "--launch") && !strcmp(v, "threads"))
      launch = LAUNCH_THREADS;
    else if (!strcmp(o, "--launch") && !strcmp(v, "procs"))
      launch = LAUNCH_PROCS;
    else if (!strcmp(o, "--launch") && !strcmp(v, "group"))
      launch = LAUNCH_GROUP;
    else if (!strcmp(o, "--memory") && (!strcmp(v, "host") || !strcmp(v, "cuda")))
      mem_mode = !strcmp(v, "cuda") ? MEM_MODE_CUDA : MEM_MODE_HOST;
    else if (!strcmp(o, "--null") && (!strcmp(v, "legacy") || !strcmp(v, "thread")))
      mem_null = !strcmp(v, "thread") ? (cudaStream_t)2 : NULL;
    else
      return usage(argv[0], suites);
  }
  for (suite = suites; suite->name && (!name || strcmp(suite->name, name)); suite++) {
  }
  if (!suite->name || nranks < 1 || nranks > CONF_MAX_RANKS || argc % 2 == 0) return usage(argv[0], suites);
  if (!make_world(nranks, launch, seed)) {
    perror("shared memory");
    return 2;
  }
  pid_t pid[CONF_MAX_RANKS];
  int n = launch == LAUNCH_PROCS ? nranks : 1;
  double start = conf_now();
  for (int i = 0; i < n; i++) {
    pid[i] = fork();
    if (pid[i] < 0) {
      perror("fork");
      for (int j = 0; j < i; j++) kill(pid[j], SIGKILL);
      return 2;
    }
    if (pid[i] == 0) {
      W->pid[i] = getpid();
      child(i);
    }
  }
  supervise(pid, n, limit);
  int bad = atomic_load(&W->failures);
  char id[128];
  snprintf(id, sizeof id, "%s ranks %d launch %s seed %llu", suite->name, nranks, conf_launch_name(), (unsigned long long)seed);
  printf("%s - %s: %d checks, %d failures, %.2f s\n1..1\n", bad ? "not ok" : "ok", id, atomic_load(&W->checks), bad, conf_now() - start);
  return bad ? 1 : 0;
}
