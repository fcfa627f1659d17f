/* Times of the kernels against the floors of the same run. Every table says what its columns are; the last one is the summary. */
#include <stdio.h>
#include <string.h>

#include "cuda.h"

static const device *dev;
static double copy_gbs; /* device copy, bytes read and written */
static uint64_t arena, arena_bytes;

typedef struct {
  char name[GCCL_KERNEL_NAME];
  gccl_leader_work work;
  gccl_copy_work list;
  gccl_launch_dims dims;
} leader_run;

static void launch_leader(void *p) {
  leader_run *r = p;
  cuda_launch(r->name, &r->work, r->dims, cuda_stream);
}
static void launch_list(void *p) {
  leader_run *r = p;
  cuda_launch(r->name, &r->list, r->dims, cuda_stream);
}

typedef struct {
  uint64_t bytes;
} copy_run;
static void launch_copy(void *p) {
  copy_run *c = p;
  must(cu.MemcpyAsync(arena, arena + arena_bytes / 2, c->bytes, cuda_stream), "cuMemcpyAsync");
}

static void parts_of(unsigned coll, unsigned n, unsigned *send, unsigned *recv) {
  *send = coll == GCCL_REDUCE_SCATTER || coll == GCCL_SCATTER || coll == GCCL_ALL_TO_ALL ? n : 1;
  *recv = coll == GCCL_ALL_GATHER || coll == GCCL_GATHER || coll == GCCL_ALL_TO_ALL ? n : 1;
}

/* Bytes that must be read and written at least. */
static double traffic(const gccl_leader_work *w) {
  double part = (double)w->count * gccl_kernel_type_size[w->dtype], n = w->nranks;
  switch (w->coll) {
  case GCCL_ALL_REDUCE: return 2 * n * part;
  case GCCL_REDUCE: return (n + 1) * part;
  case GCCL_REDUCE_SCATTER: return (n * n + n) * part;
  case GCCL_ALL_GATHER: return (n + n * n) * part;
  case GCCL_BROADCAST: return (1 + n) * part;
  case GCCL_ALL_TO_ALL: return 2 * n * n * part;
  default: return 2 * n * part;
  }
}

/* One rank's buffers take `bytes` in all parts of the larger one. 0 if the arena is too small. */
static int prepare(leader_run *r, unsigned coll, unsigned dtype, unsigned op, unsigned n, uint64_t bytes, unsigned shift) {
  unsigned sp, rp;
  memset(r, 0, sizeof *r);
  gccl_leader_kernel_name(r->name, coll, dtype, op);
  parts_of(coll, n, &sp, &rp);
  const uint64_t parts = sp > rp ? sp : rp;
  uint64_t part = bytes / parts / gccl_kernel_type_size[dtype] * gccl_kernel_type_size[dtype], at = arena;
  r->work = (gccl_leader_work){
      .version = GCCL_WORK_VERSION, .coll = (uint8_t)coll, .dtype = (uint8_t)dtype, .op = (uint8_t)op, .nranks = (uint16_t)n};
  r->work.count = part / gccl_kernel_type_size[dtype];
  r->work.div = n;
  for (unsigned k = 0; k < n; k++) {
    r->work.rank[k].send = at, at += (part * sp + 255) / 256 * 256;
    r->work.rank[k].recv = at + shift, at += (part * rp + shift + 255) / 256 * 256;
    r->work.rank[k].scale = dtype == 8 ? 0x3ff0000000000000u : dtype >= 6 ? 0x3f800000u : 1;
  }
  r->dims = gccl_leader_dims(&r->work, dev->multiprocessors);
  return at <= arena + arena_bytes;
}

static unsigned runs_for(double bytes) { return bytes > 4e9 ? 3 : bytes > 1e8 ? 10 : 50; }

static const char *size_text(uint64_t bytes) {
  static char text[4][16];
  static unsigned next;
  char *t = text[next++ % 4];
  const char *unit = "B";
  double v = (double)bytes;
  if (v >= 1 << 30)
    v /= 1 << 30, unit = "GiB";
  else if (v >= 1 << 20)
    v /= 1 << 20, unit = "MiB";
  else if (v >= 1 << 10)
    v /= 1 << 10, unit = "KiB";
  snprintf(t, 16, "%.4g %s", v, unit);
  return t;
}

static double measure(leader_run *r) { return time_graph(launch_leader, r, runs_for(traffic(&r->work))); }

static void sizes(void) {
  static const uint64_t bytes[] = {8, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 128 << 20, 1 << 30};
  static const unsigned ranks[] = {2, 4, 8, 16};
  leader_run r;
  printf("\n== leader all-reduce, float sum, out of place, one kernel for all ranks: µs in a graph (eager); %% of the copy floor\n%-9s",
         "size");
  for (unsigned k = 0; k < 4; k++) printf(" | %2u ranks              ", ranks[k]);
  puts("");
  for (unsigned i = 0; i < sizeof bytes / sizeof *bytes; i++) {
    printf("%-9s", size_text(bytes[i]));
    for (unsigned k = 0; k < 4; k++) {
      if (!prepare(&r, GCCL_ALL_REDUCE, 7, GCCL_WORK_SUM, ranks[k], bytes[i], 0)) {
        printf(" | no memory             ");
        continue;
      }
      double us = measure(&r), eager = time_eager(launch_leader, &r, runs_for(traffic(&r.work)));
      printf(" | %8.2f (%8.2f) %3.0f%%", us, eager, traffic(&r.work) / us / 1e3 / copy_gbs * 100);
    }
    puts("");
  }
}

static void types(void) {
  leader_run r;
  printf("\n== leader all-reduce, 4 ranks, 256 MiB: %% of the copy floor by type and operator\n%-7s", "type");
  for (unsigned op = 0; op < GCCL_WORK_OPS; op++) printf(" %10s", gccl_kernel_ops[op]);
  puts("  sum, receive buffers 4 bytes off / 1 element off");
  for (unsigned t = 0; t < 12; t++) {
    printf("%-7s", gccl_kernel_types[t]);
    for (unsigned op = 0; op < GCCL_WORK_OPS; op++) {
      char name[GCCL_KERNEL_NAME];
      if (gccl_leader_kernel_name(name, GCCL_ALL_REDUCE, t, op)) {
        printf(" %10s", "-");
        continue;
      }
      if (!prepare(&r, GCCL_ALL_REDUCE, t, op, 4, 256 << 20, 0)) die("bench", "device memory too small");
      printf(" %9.0f%%", traffic(&r.work) / measure(&r) / 1e3 / copy_gbs * 100);
    }
    for (int k = 0; k < 2; k++) {
      prepare(&r, GCCL_ALL_REDUCE, t, GCCL_WORK_SUM, 4, 256 << 20, k ? gccl_kernel_type_size[t] : 4);
      printf("  %3.0f%%", traffic(&r.work) / measure(&r) / 1e3 / copy_gbs * 100);
    }
    puts("");
  }
}

static void colls(void) {
  leader_run r;
  printf("\n== leader collectives, bytes of the larger buffer of a rank: µs in a graph, %% of the copy floor\n%-14s", "");
  for (unsigned n = 2; n <= 16; n *= 2) printf(" | %2u ranks: 8 KiB    256 MiB      ", n);
  puts("");
  for (unsigned c = 0; c < GCCL_SEND_RECV; c++) {
    printf("%-14s", gccl_kernel_colls[c]);
    for (unsigned n = 2; n <= 16; n *= 2) {
      if (!prepare(&r, c, 7, 0, n, 8 << 10, 0)) die("bench", "device memory too small");
      double small = measure(&r);
      if (!prepare(&r, c, 7, 0, n, 256 << 20, 0)) die("bench", "device memory too small");
      double large = measure(&r);
      printf(" | %12.2f %12.2f %3.0f%%", small, large, traffic(&r.work) / large / 1e3 / copy_gbs * 100);
    }
    puts("");
  }
  printf("SendRecv list, 1 GiB in 1, 7 and 90 pieces:");
  for (unsigned n = 1; n <= 90; n = n == 1 ? 7 : n == 7 ? 90 : 91) {
    memset(&r, 0, sizeof r);
    gccl_leader_kernel_name(r.name, GCCL_SEND_RECV, 0, 0);
    uint64_t piece = (1ull << 30) / n / 16 * 16;
    r.list = (gccl_copy_work){.version = GCCL_WORK_VERSION, .n = (uint16_t)n};
    for (unsigned i = 0; i < n; i++) r.list.item[i] = (gccl_copy_item){arena + i * piece, arena + arena_bytes / 2 + i * piece, piece};
    r.dims = gccl_copy_dims(&r.list, dev->multiprocessors);
    double us = time_graph(launch_list, &r, 5);
    printf("  %.0f µs %.0f%%", us, 2.0 * (double)(n * piece) / us / 1e3 / copy_gbs * 100);
  }
  puts("");
}

static void grids(void) {
  leader_run r;
  printf("\n== leader all-reduce, float sum: %% of the copy floor by blocks for each multiprocessor (the table uses 2)\n%-22s", "");
  for (unsigned b = 1; b <= 8; b *= 2) printf(" %6u", b);
  puts("");
  for (unsigned n = 2; n <= 16; n *= 2)
    for (unsigned k = 0; k < 2; k++) {
      uint64_t bytes = k ? 1 << 30 : 16 << 20;
      if (!prepare(&r, GCCL_ALL_REDUCE, 7, 0, n, bytes, 0)) continue;
      printf("%2u ranks %-13s", n, size_text(bytes));
      for (unsigned b = 1; b <= 8; b *= 2) {
        r.dims.grid = b * dev->multiprocessors;
        printf(" %5.0f%%", traffic(&r.work) / measure(&r) / 1e3 / copy_gbs * 100);
      }
      puts("");
    }
}

static void spinning(void) {
  static const uint64_t bytes[] = {8, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 16 << 20, 128 << 20, 1 << 30};
  printf("\n== spinning all-reduce, float sum, out of place, one kernel a rank, all ranks on this GPU: best µs in a graph, LL / direct "
         "(blocks a "
         "rank)\n%-9s",
         "size");
  for (unsigned n = 2; n <= 16; n *= 2) printf(" | %2u ranks               ", n);
  puts("");
  for (unsigned i = 0; i < sizeof bytes / sizeof *bytes; i++) {
    printf("%-9s", size_text(bytes[i]));
    for (unsigned n = 2; n <= 16; n *= 2) {
      unsigned most = dev->multiprocessors / n > GCCL_SPIN_BLOCKS ? GCCL_SPIN_BLOCKS : dev->multiprocessors / n; /* one block each */
      if (2 * n * bytes[i] > arena_bytes) {
        printf(" | no memory              ");
        continue;
      }
      double ll = bytes[i] <= GCCL_LL_BYTES ? time_spinning(dev, arena, GCCL_SPIN_LL_METHOD, n, bytes[i], most) : 0;
      double direct = time_spinning(dev, arena, GCCL_SPIN_DIRECT, n, bytes[i], most);
      printf(" | %7.2f / %9.2f (%3u)", ll, direct, most);
      fflush(stdout);
    }
    puts("");
  }
  puts("0: LL does not take this size. -1: stuck for 10 s, aborted.");
}

void bench(const device *d) {
  dev = d;
  size_t available = 0, total = 0;
  must(cu.MemGetInfo(&available, &total), "cuMemGetInfo");
  arena_bytes = 34ull << 30;
  if (arena_bytes > available / 10 * 9) arena_bytes = available / 10 * 9 / 4096 * 4096;
  arena = d->alloc(arena_bytes);
  /* Not zeros: those can run faster than data. */
  must(cu.MemsetD8Async(arena, 0x3c, arena_bytes, cuda_stream), "cuMemset");
  must(cu.StreamSynchronize(cuda_stream), "cuMemset");

  leader_run r;
  prepare(&r, GCCL_BROADCAST, 1, 0, 1, 0, 0);
  r.work.count = 0;
  double empty_graph = time_graph(launch_leader, &r, 50), empty = time_eager(launch_leader, &r, 200);
  copy_run c = {1ull << 30};
  if (c.bytes > arena_bytes / 2) c.bytes = arena_bytes / 2;
  copy_gbs = 2.0 * (double)c.bytes / time_graph(launch_copy, &c, 5) / 1e3;
  printf("\n== floors of this run: a kernel that does nothing %.2f µs in a graph, %.2f µs eager; device copy of %s %.0f GB/s (read + "
         "written)\n",
         empty_graph, empty, size_text(c.bytes), copy_gbs);
  types();
  grids();
  colls();
  sizes();
  spinning(); /* last: if it fails the rest has been printed */
}
