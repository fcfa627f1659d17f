#include "events.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int events_fd = -1;

void perf_events_open(int fd) { events_fd = fd; }

/* At most PIPE_BUF bytes: the kernel then keeps a line in one piece (pipe(7)). */
static void emit(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void emit(const char *format, ...) {
  char line[2048];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n < 0 || n >= (int)sizeof line) return;
  while (write(events_fd, line, (size_t)n) < 0 && errno == EINTR) {
  }
}

static void escape(char *out, size_t room, const char *text) {
  size_t at = 0;
  for (; *text && at + 7 < room; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') out[at++] = '\\';
    if (c < 0x20)
      at += (size_t)snprintf(out + at, room - at, "\\u%04x", c);
    else
      out[at++] = (char)c;
  }
  out[at] = 0;
}

void perf_event_id(const ncclUniqueId *id) {
  char hex[2 * NCCL_UNIQUE_ID_BYTES + 1];
  for (int i = 0; i < NCCL_UNIQUE_ID_BYTES; i++) snprintf(hex + 2 * i, 3, "%02x", (unsigned char)id->internal[i]);
  emit("{\"event\":\"id\",\"id\":\"%s\"}\n", hex);
}

void perf_event_init(int rank, int core, double init_us) {
  emit("{\"event\":\"init\",\"rank\":%d,\"pid\":%ld,\"core\":%d,\"init_us\":%.1f}\n", rank, (long)getpid(), core, init_us);
}

void perf_event_result(int rank, int index, int place, const struct perf_summary *s, long wrong, double front_ns) {
  emit("{\"event\":\"result\",\"rank\":%d,\"case\":%d,\"place\":%d,\"mean\":%.6g,\"p50\":%.6g,\"p99\":%.6g,"
       "\"min\":%.6g,\"wrong\":%ld,\"front_ns\":%.6g}\n",
       rank, index, place, s->mean_us, s->p50_us, s->p99_us, s->min_us, wrong, front_ns);
}

void perf_event_error(int rank, const char *call, int code, const char *text) {
  char safe[1500];
  escape(safe, sizeof safe, text ? text : "");
  emit("{\"event\":\"error\",\"rank\":%d,\"call\":\"%s\",\"code\":%d,\"text\":\"%s\"}\n", rank, call, code, safe);
}

void perf_event_done(int rank) { emit("{\"event\":\"done\",\"rank\":%d}\n", rank); }
