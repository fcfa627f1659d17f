/* dlopen_all LIBRARY now|lazy: opens the library locally, finds every symbol named on standard input, calls two of
 * them, and checks that the library neither leaked its names nor started a thread. Knows no header of ours. */
#include <dlfcn.h>
#include <string.h>

#include "abi_check.h"

int main(int argc, char **argv) {
  CHECK(argc == 3, "usage: dlopen_all LIBRARY now|lazy");
  void *lib = dlopen(argv[1], RTLD_LOCAL | (strcmp(argv[2], "now") ? RTLD_LAZY : RTLD_NOW));
  CHECK(lib != NULL, "dlopen: %s", dlerror());
  char name[256];
  int found = 0;
  while (scanf("%255s", name) == 1) {
    CHECK(dlsym(lib, name) != NULL, "%s is not there: %s", name, dlerror());
    found++;
  }
  CHECK(found > 0, "no symbol names on standard input");
  CHECK(dlsym(RTLD_DEFAULT, "ncclGetVersion") == NULL, "a local dlopen made ncclGetVersion visible to all");

  int (*get_version)(int *);
  const char *(*get_error_string)(int);
  *(void **)&get_version = dlsym(lib, "ncclGetVersion");
  *(void **)&get_error_string = dlsym(lib, "ncclGetErrorString");
  int version = 0;
  CHECK(get_version(&version) == 0 && version == 23007, "version is %d, want 23007", version);
  CHECK(get_error_string(4) != NULL, "ncclGetErrorString(4) is NULL");
  CHECK(thread_count() == 1, "%d threads after loading, want 1", thread_count());

  /* Closing and opening again must work, whether or not the loader really unmaps the library. */
  CHECK(dlclose(lib) == 0, "dlclose: %s", dlerror());
  lib = dlopen(argv[1], RTLD_LOCAL | RTLD_NOW);
  CHECK(lib != NULL, "second dlopen: %s", dlerror());
  *(void **)&get_version = dlsym(lib, "ncclGetVersion");
  CHECK(get_version(&version) == 0, "ncclGetVersion failed after the second dlopen");
  printf("%d symbols\n", found);
  return 0;
}
