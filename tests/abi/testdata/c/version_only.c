/* A linked program that asks only for strings and the version has one thread, before and after. */
#include <nccl.h>
#include <string.h>

#include "abi_check.h"

int main(void) {
  CHECK(thread_count() == 1, "%d threads at the start, want 1", thread_count());
  int version = 0;
  CHECK(ncclGetVersion(&version) == ncclSuccess, "ncclGetVersion failed");
  CHECK(version == NCCL_VERSION_CODE, "version is %d, want %d", version, NCCL_VERSION_CODE);
  CHECK(ncclGetVersion(NULL) == ncclInvalidArgument, "ncclGetVersion(NULL) is not ncclInvalidArgument");
  for (int code = -2; code <= ncclNumResults + 2; code++) {
    const char *text = ncclGetErrorString((ncclResult_t)code);
    CHECK(text != NULL && text[0] != '\0', "no text for result %d", code);
  }
  CHECK(ncclGetLastError(NULL) != NULL, "ncclGetLastError(NULL) is NULL");
  const char *path = gcclLibraryPath();
  CHECK(path != NULL && strstr(path, ".so") != NULL, "library path is \"%s\"", path ? path : "(null)");
  CHECK(thread_count() == 1, "%d threads at the end, want 1", thread_count());
  return 0;
}
