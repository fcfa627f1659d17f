/* network.c: C06 and C07 in parts (the environment is the test's), C08 noise and interruptions. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "cases.h"

/* Used by C06, C07, C24 and C29: whatever the environment is, ranks meet and compute. */
void alive(struct team *t) {
  for (int k = 0; k < 3; k++) coll_alive(t, t->comm);
}

/* C06: no interface matches: an error that names the variable, its value and the interfaces of the host. */
void refused_filter(struct team *t) {
  int me = t->first;
  ncclUniqueId id;
  RC(me, ncclInvalidUsage, ncclGetUniqueId(&id));
  const char *value = getenv("NCCL_SOCKET_IFNAME"); /* not there when a file has it */
  says(me, "NCCL_SOCKET_IFNAME", "the variable");
  says(me, value ? value : "nosuch0", "its value");
  says(me, "lo", "the interfaces of the host");
}

/* Ports on which this process listens: its socket descriptors, looked up in the kernel's table. */
static int listening_ports(int *port, int max) {
  int n = 0;
  for (int v6 = 0; v6 < 2; v6++) {
    FILE *f = fopen(v6 ? "/proc/self/net/tcp6" : "/proc/self/net/tcp", "r");
    char line[400];
    while (f && fgets(line, sizeof line, f)) {
      unsigned p, state;
      unsigned long inode;
      if (sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*s %*s %lu", &p, &state, &inode) != 3 || state != 10) continue;
      char want[40], path[300], link[64];
      snprintf(want, sizeof want, "socket:[%lu]", inode);
      DIR *d = opendir("/proc/self/fd");
      for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        ssize_t k = readlink(path, link, sizeof link - 1);
        if (k <= 0) continue;
        link[k] = 0;
        if (!strcmp(link, want) && n < max) port[n++] = (int)p;
      }
      if (d) closedir(d);
    }
    if (f) fclose(f);
  }
  return n;
}

static int dial(int port) {
  int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (s >= 0 && connect(s, (struct sockaddr *)&a, sizeof a) == 0) return s;
  if (s >= 0) close(s);
  return -1;
}

static atomic_int noise_stop, noise_count;

static void *noise(void *arg) {
  (void)arg;
  static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  unsigned char big[64];
  memset(big, 0xff, sizeof big); /* a length of 4 GiB - 1 in any byte order */
  int half[50], nhalf = 0;
  while (!atomic_load(&noise_stop)) {
    int port[16], n = listening_ports(port, 16);
    for (int k = 0; k < n; k++) {
      int s = dial(port[k]);
      if (s < 0) continue;
      int kind = atomic_fetch_add(&noise_count, 1) % 4;
      if (kind == 0) (void)!send(s, http, sizeof http - 1, MSG_NOSIGNAL);
      if (kind == 1) (void)!send(s, big, sizeof big, MSG_NOSIGNAL);
      if (kind == 2 && nhalf < 50)
        half[nhalf++] = s; /* says nothing and stays */
      else
        close(s);
    }
    conf_sleep(0.002);
  }
  while (nhalf > 0) close(half[--nhalf]);
  return NULL;
}

static void on_alarm(int sig) { (void)sig; }

void c08(struct team *t) {
  enum { CYCLES = 25 };
  int me = t->first;
  /* No SA_RESTART: every system call of the library can be cut short. */
  struct sigaction sa = {.sa_handler = on_alarm};
  sigaction(SIGALRM, &sa, NULL);
  struct itimerval tick = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
  long before = conf_proc_status("VmHWM");
  pthread_t th;
  if (me == 0 && !TRUE(me, pthread_create(&th, NULL, noise, NULL) == 0)) return;
  setitimer(ITIMER_REAL, &tick, NULL);
  ncclComm_t c[CONF_MAX_RANKS];
  for (int k = 0; k < CYCLES; k++) {
    if (!team_init(t, c, NULL)) break;
    coll_alive(t, c);
    team_destroy(t, c);
  }
  setitimer(ITIMER_REAL, &off, NULL);
  if (me == 0) {
    atomic_store(&noise_stop, 1);
    pthread_join(th, NULL);
    conf_note("%d noisy connections", atomic_load(&noise_count));
    TRUE(me, atomic_load(&noise_count) > 0);
  }
  long after = conf_proc_status("VmHWM");
  if (after - before > 200 * 1024) conf_fail(me, "peak memory grew by %ld KiB", after - before);
}
