/* A tool's way in: the program's own ncclGetVersion and ncclCommCount take the place of the library's, and reach
 * them by their twins. */
#include <nccl.h>

#include "abi_check.h"

static int versions, counts;

ncclResult_t ncclGetVersion(int *version) {
  versions++;
  return pncclGetVersion(version);
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  counts++;
  return pncclCommCount(comm, count);
}

int main(void) {
  int n = 0;
  CHECK(ncclGetVersion(&n) == ncclSuccess && n == 23007, "version is %d through the twin", n);
  CHECK(ncclCommCount(NULL, &n) == ncclInvalidArgument, "ncclCommCount(NULL) through the twin is not refused");
  CHECK(versions == 1 && counts == 1, "interposed calls: %d and %d, want 1 and 1", versions, counts);
  return 0;
}
