/* numbers.c: values at the edges of the types: NaN and infinity, signed zero, saturation of fp8, overflow of
 * integers, averages of negative numbers. Inputs are given, results are known by rule. */
#include <math.h>

#include "numfmt.h"
#include "suites.h"

/* All ranks but the last contribute a, the last one b; every rank must get want. */
static void given(struct team *t, ncclDataType_t type, ncclRedOp_t op, uint64_t a, uint64_t b, uint64_t want, const char *what) {
  enum { N = 5 };
  struct buf buf[CONF_MAX_RANKS];
  for (int i = 0; i < t->nlocal; i++) {
    if (!buf_new(&buf[i], t->first + i, 2 * N * 8)) return;
    for (size_t j = 0; j < N; j++) num_store(type, buf[i].copy, j, t->first + i == t->nranks - 1 ? b : a);
    buf_put(&buf[i], 0, N * 8);
  }
  EACH(t, what, ncclAllReduce(buf[i].at, buf[i].at + N * 8, N, type, op, t->comm[i], mem_null));
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    OK(t->first + i, mem_stream_sync(mem_null));
    buf_get(&buf[i], N * 8, N * 8);
    for (size_t j = 0; j < N; j++) {
      uint64_t got = num_load(type, buf[i].copy + N * 8, j);
      int nan = num_is_float(type) && isnan(num_decode(type, want));
      atomic_fetch_add(&W->checks, 1);
      if (nan ? isnan(num_decode(type, got)) : got == want) continue;
      conf_fail(t->first + i, "ncclAllReduce %s op %d, %s: index %zu: want %#llx, got %#llx", num_name(type), op, what, j,
                (unsigned long long)want, (unsigned long long)got);
      break;
    }
    buf_free(&buf[i], t->first + i);
  }
}

static void floats(struct team *t, ncclDataType_t type) {
  uint64_t inf = num_encode(type, INFINITY), ninf = num_encode(type, -INFINITY), nan = num_encode(type, NAN);
  uint64_t one = num_one(type, 1), two = num_one(type, 2), minus = num_one(type, -1);
  int fp8 = num_size(type) == 1, many = t->nranks > 1;
  given(t, type, ncclMax, one, nan, many ? one : nan, "a NaN loses to a number in max");
  given(t, type, ncclMin, one, nan, many ? one : nan, "a NaN loses to a number in min");
  given(t, type, ncclMax, nan, nan, nan, "max of NaNs");
  given(t, type, ncclSum, one, nan, nan, "sum with a NaN");
  given(t, type, ncclMax, minus, two, two, "max of -1 and 2");
  given(t, type, ncclMin, two, minus, minus, "min of 2 and -1");
  if (fp8) {
    uint64_t top = num_encode(type, 1e30L);
    given(t, type, ncclSum, top, top, top, "the sum of the largest values saturates");
    given(t, type, ncclAvg, top, top, top, "the average of the largest value");
    return;
  }
  given(t, type, ncclSum, one, inf, inf, "sum with infinity");
  given(t, type, ncclSum, inf, ninf, many ? nan : ninf, "infinity and minus infinity");
  given(t, type, ncclMin, one, ninf, ninf, "min with minus infinity");
}

void suite_numbers(struct team *t) {
  int n = t->nranks;
  if (t->first == 0) {
    int bad = num_selftest();
    if (bad) conf_fail(0, "the test's own conversions have %d errors", bad);
  }
  static const ncclDataType_t types[] = {ncclFloat16, ncclBfloat16, ncclFloat32, ncclFloat64, ncclFloat8e4m3, ncclFloat8e5m2};
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) floats(t, types[k]);
  given(t, ncclInt8, ncclSum, 127, 1, num_wrap(ncclInt8, (uint64_t)(127 * (n - 1) + 1)), "int8 wraps");
  given(t, ncclUint8, ncclProd, 255, 255, n % 2 ? 255 : 1, "uint8 product wraps");
  given(t, ncclInt32, ncclMax, 0xffffffffu, 5, 5, "int32 max is signed");
  given(t, ncclUint32, ncclMax, 0xffffffffu, 5, n > 1 ? 0xffffffffu : 5, "uint32 max is unsigned");
  given(t, ncclInt64, ncclMin, (uint64_t)INT64_MIN, 5, n > 1 ? (uint64_t)INT64_MIN : 5, "int64 min");
  given(t, ncclUint64, ncclMin, UINT64_MAX, 5, 5, "uint64 min");
  /* n-1 times -1 and once -2: the sum is -(n+1), and -(n+1)/n truncates to -1, except for one rank. */
  given(t, ncclInt32, ncclAvg, 0xffffffffu, 0xfffffffeu, n > 1 ? 0xffffffffu : 0xfffffffeu,
        "average of negative int32 truncates towards zero");
  given(t, ncclInt64, ncclAvg, 0, (uint64_t)-1, n > 1 ? 0 : (uint64_t)-1, "average of int64 between -1 and 0 is 0");
}
