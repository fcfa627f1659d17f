/* Shared by the small programs of the ABI tests: a check that says what failed, and the number of threads. */
#ifndef ABI_CHECK_H
#define ABI_CHECK_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond, ...)                                    \
  do {                                                      \
    if (!(cond)) {                                          \
      fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);       \
      fprintf(stderr, __VA_ARGS__);                         \
      fputc('\n', stderr);                                  \
      exit(1);                                              \
    }                                                       \
  } while (0)

static inline int thread_count(void) {
  DIR *dir = opendir("/proc/self/task");
  CHECK(dir != NULL, "cannot open /proc/self/task");
  int n = 0;
  for (struct dirent *e; (e = readdir(dir)) != NULL;) n += e->d_name[0] != '.';
  closedir(dir);
  return n;
}

#endif
