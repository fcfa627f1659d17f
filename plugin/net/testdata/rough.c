/* The example plugin, misbehaving as the exported array says. */
#include "../../../examples/06_plugins/net/net.h"

#include <unistd.h>

enum { BUSY, SLOW, SHORT, FAIL, AFTER, FLUSHES, BLOCK, DEVICE, N };
enum { AT_INIT = 1, AT_DEVICES, AT_LISTEN, AT_CONNECT, AT_ACCEPT, AT_REG, AT_ISEND, AT_IRECV, AT_TEST };

/* BUSY n: of n+1 calls that may say "again", n do. SLOW n: the same for test. SHORT n: large receives report n bytes less. FAIL: which
 * call fails, after so many calls of it. BLOCK: connect sleeps for so many milliseconds. DEVICE: the type of the device. */
__attribute__((visibility("default"))) int rough[N];

/* Not in turns: two ends whose calls come in a rhythm would keep each other waiting. */
static int turn(int every) {
  static _Atomic uint32_t random;
  random = random * 1664525u + 1013904223u;
  return every && (random >> 16) % (unsigned)(every + 1) != 0;
}

static int fails(int call) { return rough[FAIL] == call && rough[AFTER]-- <= 0; }

static int rough_init(np_logger log) { return fails(AT_INIT) ? NP_SYSTEM : example_init(log); }
static int rough_devices(int *n) { return fails(AT_DEVICES) ? NP_SYSTEM : example_devices(n); }
static int rough_listen(int dev, void *h, void **l) { return fails(AT_LISTEN) ? NP_SYSTEM : example_listen(dev, h, l); }
static int rough_connect(int dev, void *h, void **s) {
  if (rough[BLOCK]) usleep(1000u * (unsigned)rough[BLOCK]);
  if (fails(AT_CONNECT)) return NP_SYSTEM;
  return turn(rough[BUSY]) ? NP_OK : example_connect(dev, h, s);
}
static int rough_accept(void *l, void **r) {
  if (fails(AT_ACCEPT)) return NP_SYSTEM;
  return turn(rough[BUSY]) ? NP_OK : example_accept(l, r);
}
static int rough_reg(void *c, void *data, size_t bytes, int type, void **m) {
  return fails(AT_REG) ? NP_SYSTEM : example_reg(c, data, bytes, type, m);
}
static int rough_isend(void *c, void *data, size_t bytes, int tag, void *m, void **request) {
  if (fails(AT_ISEND)) return NP_SYSTEM;
  return turn(rough[BUSY]) ? NP_OK : example_isend(c, data, bytes, tag, m, request);
}
static int rough_irecv(void *c, int n, void **data, size_t *sizes, int *tags, void **m, void **request) {
  if (fails(AT_IRECV)) return NP_SYSTEM;
  return turn(rough[BUSY]) ? NP_OK : example_irecv(c, n, data, sizes, tags, m, request);
}
static int rough_flush(void *c, int n, void **data, int *sizes, void **m, void **request) {
  rough[FLUSHES] += n;
  return example_flush(c, n, data, sizes, m, request);
}
static int rough_test(void *request, int *done, int *sizes) {
  *done = 0;
  if (fails(AT_TEST)) return NP_SYSTEM;
  if (turn(rough[SLOW])) return NP_OK;
  int rc = example_test(request, done, sizes);
  if (!rc && *done && sizes && sizes[0] > 1 << 14) sizes[0] -= rough[SHORT];
  return rc;
}
static int rough_properties(int dev, np_props_v12 *p) {
  int rc = example_properties(dev, p);
  p->netDeviceType = rough[DEVICE];
  return rc;
}

#define example_init rough_init
#define example_devices rough_devices
#define example_properties rough_properties
#define example_listen rough_listen
#define example_connect rough_connect
#define example_accept rough_accept
#define example_reg rough_reg
#define example_isend rough_isend
#define example_irecv rough_irecv
#define example_flush rough_flush
#define example_test rough_test
#include "../../../examples/06_plugins/net/tables.c"
