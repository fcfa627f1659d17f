/* What the library itself says: gccl-info runs this program, because two Go runtimes must not meet in one process.
 *
 * gccl-info-probe        prints lines "key value": version, path, device (cuda, or host with the reason)
 * gccl-info-probe run    an all-reduce of two ranks on the device that the library chooses by itself; its log is the answer */
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void line(const char *key, const char *value) {
  printf("%s ", key);
  for (; *value; value++) putchar(*value == '\n' ? ' ' : *value);
  putchar('\n');
}

static int describe(void) {
  int version = 0;
  char number[16];
  if (ncclGetVersion(&version) != ncclSuccess) return 1;
  snprintf(number, sizeof number, "%d", version);
  line("version", number);
  line("path", gcclLibraryPath());
  const char *wish = getenv("GCCL_DEVICE");
  if (wish && !strcmp(wish, "host"))
    line("device", "host: GCCL_DEVICE=host");
  else if (gcclSetDeviceKind(gcclDeviceCuda) == ncclSuccess)
    line("device", "cuda");
  else {
    char why[1200]; /* "…: … asks for …, but REASON; REMEDY" */
    const char *text = ncclGetLastError(NULL), *reason = strstr(text, ", but ");
    snprintf(why, sizeof why, "host: %s", reason ? reason + 6 : text);
    char *remedy = strstr(why, "; for ordinary memory");
    if (reason && remedy) *remedy = 0;
    line("device", why);
  }
  return 0;
}

static int run(void) {
  ncclComm_t comm[2];
  void *at[2];
  if (ncclCommInitAll(comm, 2, NULL) != ncclSuccess) return fprintf(stderr, "%s\n", ncclGetLastError(NULL)), 1;
  int bad = 0;
  for (int r = 0; r < 2; r++) bad |= ncclMemAlloc(&at[r], 1 << 20) != ncclSuccess;
  bad |= bad || ncclGroupStart() != ncclSuccess;
  for (int r = 0; r < 2 && !bad; r++) bad |= ncclAllReduce(at[r], at[r], 1 << 18, ncclFloat, ncclSum, comm[r], NULL) != ncclSuccess;
  bad |= bad || ncclGroupEnd() != ncclSuccess;
  for (int r = 0; r < 2 && !bad; r++) bad |= ncclCommDestroy(comm[r]) != ncclSuccess; /* waits for the work, which on CUDA is in a stream */
  for (int r = 0; r < 2 && !bad; r++) bad |= ncclMemFree(at[r]) != ncclSuccess;
  if (bad) fprintf(stderr, "%s\n", ncclGetLastError(NULL));
  return bad;
}

int main(int argc, char **argv) { return argc > 1 && !strcmp(argv[1], "run") ? run() : describe(); }
