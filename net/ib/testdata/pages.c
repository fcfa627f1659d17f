/* The counts of pages.c, with a device that is made up: compiled with it and run by ib_test.go. */
#include <stdlib.h>

#include "../pages.c"

static char *memory;
static int maps[8], registers, refuse = -1, apart;

static int map(void *arg, void *page, uint64_t bytes, int io, void **device, char *why) {
  long i = ((char *)page - memory) / PAGE;
  if (arg != memory || bytes != PAGE || i < 0 || i >= 8 || maps[i]) abort(); /* twice */
  if (i == refuse) return gccl_net_why(why, GCCL_NET_ESYSTEM, "refused");
  maps[i] = 1;
  registers += io;
  *device = (char *)page + (1 << 20) + (apart && i > 2 ? PAGE : 0);
  return 0;
}
static void unmap(void *arg, void *page) {
  long i = ((char *)page - memory) / PAGE;
  if (arg != memory || !maps[i]) abort();
  maps[i] = 0;
}
static int mapped(void) {
  int n = 0;
  for (int i = 0; i < 8; i++) n = n << 1 | maps[i];
  return n;
}

#define TRUE(OK) ((OK) ? (void)0 : (void)(fprintf(stderr, "line %d: %s\n", __LINE__, #OK), exit(1)))

int main(void) {
  memory = aligned_alloc(PAGE, 8 * PAGE);
  gccl_card_pages m = {map, unmap, memory};
  char why[GCCL_NET_TEXT];
  void *d;
  TRUE(ib_pages_pin(NULL, memory + 5, 8, 0, &d, why) == 0 && d == memory + 5); /* kernels on the CPU */
  ib_pages_unpin(NULL, memory + 5, 8);
  TRUE(ib_pages_pin(&m, memory + PAGE + 64, 2 * PAGE, 0, &d, why) == 0 && (char *)d == memory + PAGE + 64 + (1 << 20));
  TRUE(mapped() == 0x70);
  TRUE(ib_pages_pin(&m, memory + 3 * PAGE + 128, 8, 0, &d, why) == 0 && (char *)d == memory + 3 * PAGE + 128 + (1 << 20)); /* shares one */
  TRUE(ib_pages_pin(&m, memory + 7 * PAGE, 8, 1, &d, why) == 0 && registers == 1 && mapped() == 0x71);
  ib_pages_unpin(&m, memory + PAGE + 64, 2 * PAGE);
  TRUE(mapped() == 0x11); /* the shared one stays */
  ib_pages_unpin(&m, memory + 3 * PAGE + 128, 8);
  ib_pages_unpin(&m, memory + 7 * PAGE, 8);
  TRUE(mapped() == 0);
  refuse = 3; /* in the middle: nothing stays */
  TRUE(ib_pages_pin(&m, memory, 6 * PAGE, 0, &d, why) < 0 && !strcmp(why, "refused") && mapped() == 0);
  refuse = -1;
  apart = 1;
  TRUE(ib_pages_pin(&m, memory, 6 * PAGE, 0, &d, why) < 0 && strstr(why, "apart") && mapped() == 0);
  TRUE(!pages);
  free(memory);
  return 0;
}
