/* An env plugin that takes settings from a file of lines NAME=VALUE, and what the file does not have from the environment.
 *
 * It needs no header of NCCL: the table below is ncclEnvPlugin_v1. What getEnv returns must stay valid until finalize.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *name;
  int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix);
  int (*finalize)(void);
  const char *(*getEnv)(const char *name);
} env_v1;

static char *text;          /* the file; its lines end with a zero, and so do their names */
static char *line_of[1024]; /* a name, a zero, a value */
static int lines;

static int init(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix) {
  const char *path = getenv("EXAMPLE_ENV_FILE");
  FILE *f = path ? fopen(path, "r") : NULL;
  enum { ROOM = 1 << 16 };
  (void)major, (void)minor, (void)patch, (void)suffix;
  if (!path) return 0; /* the environment alone */
  text = calloc(1, ROOM);
  if (!f || !text) {
    fprintf(stderr, "env plugin: EXAMPLE_ENV_FILE %s cannot be read\n", path);
    if (f) fclose(f);
    return 2; /* ncclSystemError: the program's first call returns it */
  }
  size_t n = fread(text, 1, ROOM - 1, f);
  fclose(f);
  text[n] = 0;
  for (char *save, *line = strtok_r(text, "\n", &save); line && lines < 1024; line = strtok_r(NULL, "\n", &save)) {
    char *equals = strchr(line, '=');
    if (line[0] == '#' || !equals) continue;
    *equals = 0;
    line_of[lines++] = line;
  }
  return 0;
}

static int finalize(void) {
  free(text);
  text = NULL;
  lines = 0;
  return 0;
}

static const char *get_env(const char *name) {
  for (int i = 0; i < lines; i++)
    if (!strcmp(line_of[i], name)) return line_of[i] + strlen(name) + 1;
  return getenv(name);
}

env_v1 ncclEnvPlugin_v1 = {"file-example", init, finalize, get_env};
