/* Has a net plugin make one device of two, and sends through it: joined LIBRARY PID. The sender is in the network of the process PID, whose
 * links have the same names. How much went over each is the caller's to see. */
#define _GNU_SOURCE
#include "net.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

enum { BYTES = 8 << 20, TIMES = 8 };

static void join_two(void) {
  props one, two;
  CHECK(net->getProperties(0, &one) == NP_OK && net->getProperties(1, &two) == NP_OK);
  np_vdevice_v9 parts = {2, {0, 1}}, loopback = {2, {0, 2}}, twice = {2, {1, 1}}, none = {0, {0}};
  int before, after, none_made = -1;
  CHECK(net->devices(&before) == NP_OK && before == 3); /* the last is the loopback interface */
  CHECK(net->makeVDevice(&none_made, &loopback) == NP_INVALID_USAGE && net->makeVDevice(&none_made, &twice) == NP_INVALID_USAGE);
  CHECK(net->makeVDevice(&none_made, &none) == NP_INVALID_USAGE && none_made == -1);
  CHECK(net->makeVDevice(&device, &parts) == NP_OK && device == before && net->devices(&after) == NP_OK && after == before + 1);
  CHECK(net->getProperties(device, &p) == NP_OK && p.speed == one.speed + two.speed && p.guid == one.guid);
  char name[64];
  snprintf(name, sizeof name, "%s+%s", one.name, two.name);
  CHECK(!strcmp(p.name, name) && p.vProps.ndevs == 2 && p.vProps.devs[0] == 0 && p.vProps.devs[1] == 1);
  np_vdevice_v9 again = {2, {device, 0}};
  CHECK(net->makeVDevice(&none_made, &again) == NP_INVALID_USAGE);
}

static void move(void *comm, int sends) {
  void *mhandle, *request = NULL;
  char *m = aligned_alloc(4096, BYTES);
  int tag = 5;
  CHECK(m && net->regMr(comm, m, BYTES, NP_PTR_HOST, &mhandle) == NP_OK);
  for (int time = 0; time < TIMES; time++) {
    for (size_t i = 0; i < BYTES; i++) m[i] = sends ? (char)(i * 7 + (i >> 12) + (size_t)time) : 0;
    size_t room = BYTES;
    void *at = m, *r = mhandle;
    AWAIT((request = sends ? send_one(comm, m, BYTES, tag, mhandle) : receive(comm, 1, &at, &room, &tag, &r)));
    int done = 0, size = 0;
    AWAIT((CHECK(net->test(request, &done, &size) == NP_OK), done));
    for (size_t i = 0; i < BYTES && !sends; i++) CHECK(m[i] == (char)(i * 7 + (i >> 12) + (size_t)time));
  }
  CHECK(net->deregMr(comm, mhandle) == NP_OK && (sends ? net->closeSend(comm) : net->closeRecv(comm)) == NP_OK);
  free(m);
}

int main(int argc, char **argv) {
  int way[2], status = 1;
  unsigned char handle[NP_HANDLE] = {0};
  void *comm;
  who = "main";
  CHECK(argc == 3 && pipe(way) == 0);
  pid_t child = fork(); /* before the library is there */
  CHECK(child >= 0);
  who = child ? "receiver" : "sender";
  if (!child) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%s/ns/net", argv[2]);
    int ns = open(name, O_RDONLY | O_CLOEXEC);
    CHECK(ns >= 0 && setns(ns, CLONE_NEWNET) == 0);
  }
  load(argv[1]);
  join_two();
  if (child) {
    void *listening = listen_at(handle);
    CHECK(write(way[1], handle, sizeof handle) == sizeof handle);
    AWAIT((comm = try_accept(listening)));
    CHECK(net->closeListen(listening) == NP_OK);
    move(comm, 0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    printf("joined v" STR(V) " %s: ok\n", net->name);
    return 0;
  }
  CHECK(read(way[0], handle, sizeof handle) == sizeof handle);
  AWAIT((comm = try_connect(handle)));
  move(comm, 1);
  _exit(0);
}
