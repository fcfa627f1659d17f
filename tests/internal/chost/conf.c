/* conf.c: reports, clocks, random numbers. */
#define _GNU_SOURCE
#include "conf.h"

#include <dirent.h>
#include <errno.h>

struct conf_world *W;

/* One write per line, so that lines of several processes stay whole. */
static void line(const char *head, int rank, const char *fmt, va_list ap) {
  char buf[1500];
  int n = rank >= 0 ? snprintf(buf, sizeof buf, "%srank %d of %d (%s): ", head, rank, W->nranks, conf_launch_name())
                    : snprintf(buf, sizeof buf, "%s", head);
  n += vsnprintf(buf + n, sizeof buf - (size_t)n - 2, fmt, ap);
  if (n > (int)sizeof buf - 2) n = (int)sizeof buf - 2;
  for (int i = 0; i < n; i++)
    if (buf[i] == '\n') buf[i] = ' ';
  buf[n++] = '\n';
  if (write(STDOUT_FILENO, buf, (size_t)n) < 0) atomic_fetch_add(&W->failures, 1);
}

int conf_fail(int rank, const char *fmt, ...) {
  /* A broken collective fails thousands of times; the first lines tell the story. */
  if (atomic_fetch_add(&W->failures, 1) < 60) {
    va_list ap;
    va_start(ap, fmt);
    line("not ok - ", rank, fmt, ap);
    va_end(ap);
  }
  return 0;
}

void conf_note(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  line("# ", -1, fmt, ap);
  va_end(ap);
}

void conf_skip(const char *fmt, ...) {
  atomic_fetch_add(&W->skips, 1);
  va_list ap;
  va_start(ap, fmt);
  line("# skip: ", -1, fmt, ap);
  va_end(ap);
}

void conf_at(int rank, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(W->at[rank], CONF_AT_BYTES, fmt, ap);
  va_end(ap);
}

static const char *base(const char *file) {
  const char *s = strrchr(file, '/');
  return s ? s + 1 : file;
}

int conf_rc(int rank, ncclResult_t want, ncclResult_t got, const char *call, const char *file, int ln) {
  atomic_fetch_add(&W->checks, 1);
  if (got == want) return 1;
  return conf_fail(rank, "%s:%d: %s: want %d (%s), got %d (%s); last error \"%s\"", base(file), ln, call, want, ncclGetErrorString(want),
                   got, ncclGetErrorString(got), ncclGetLastError(NULL));
}

int conf_true(int rank, int cond, const char *text, const char *file, int ln) {
  atomic_fetch_add(&W->checks, 1);
  if (cond) return 1;
  return conf_fail(rank, "%s:%d: want %s; last error \"%s\"", base(file), ln, text, ncclGetLastError(NULL));
}

int conf_rc_any(int rank, ncclResult_t got, const char *call, int n, ...) {
  atomic_fetch_add(&W->checks, 1);
  char list[64] = "";
  va_list ap;
  va_start(ap, n);
  for (int i = 0; i < n; i++) {
    int want = va_arg(ap, int);
    if ((int)got == want) {
      va_end(ap);
      return 1;
    }
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d", i ? " or " : "", want);
  }
  va_end(ap);
  return conf_fail(rank, "%s: want %s, got %d; last error \"%s\"", call, list, got, ncclGetLastError(NULL));
}

int conf_await(int word, long long value, double seconds) {
  double end = conf_now() + seconds;
  while (atomic_load(&W->note[word]) < value) {
    if (conf_now() > end) return 0;
    conf_sleep(0.001);
  }
  return 1;
}

double conf_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void conf_sleep(double s) {
  struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
  while (nanosleep(&t, &t) < 0 && errno == EINTR) {
  }
}

uint64_t conf_rand(uint64_t *s) {
  uint64_t z = (*s += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

const char *conf_launch_name(void) {
  static const char *const names[] = {"threads", "procs", "group"};
  return names[W->launch];
}

long conf_proc_status(const char *key) {
  FILE *f = fopen("/proc/self/status", "r");
  if (!f) return -1;
  char l[256];
  long v = -1;
  while (fgets(l, sizeof l, f))
    if (!strncmp(l, key, strlen(key)) && l[strlen(key)] == ':') {
      v = strtol(l + strlen(key) + 1, NULL, 10);
      break;
    }
  fclose(f);
  return v;
}

int conf_open_fds(void) {
  DIR *d = opendir("/proc/self/fd");
  if (!d) return -1;
  int n = 0;
  while (readdir(d)) n++;
  closedir(d);
  return n - 3; /* ".", ".." and the directory itself */
}
