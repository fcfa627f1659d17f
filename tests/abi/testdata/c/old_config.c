/* old_config SIZE USED VERSION: makes a communicator with a configuration as a caller of an older header hands it
 * over: SIZE bytes, of which the first USED hold fields and the rest is padding with garbage in it, and VERSION as
 * its version. */
#include <string.h>

#include "host_rank.h"

int main(int argc, char **argv) {
  CHECK(argc == 4, "usage: old_config SIZE USED VERSION");
  size_t size = strtoul(argv[1], NULL, 10), used = strtoul(argv[2], NULL, 10);
  unsigned int version = (unsigned int)strtoul(argv[3], NULL, 10);
  CHECK(used >= 20 && used <= size && size <= sizeof(ncclConfig_t), "%zu of %zu bytes is no older form", used, size);

  /* On the heap and exactly as long as the caller's form, so that a memory checker sees a read behind it. */
  ncclConfig_t all = NCCL_CONFIG_INITIALIZER;
  unsigned char *config = malloc(size);
  CHECK(config != NULL, "out of memory");
  all.size = size;
  all.version = version;
  all.blocking = 1;
  memcpy(config, &all, size);
  memset(config + used, 0xa5, size - used);

  ncclUniqueId id;
  ncclComm_t comm = NULL;
  TRY(gcclSetDeviceKind(gcclDeviceHost));
  TRY(ncclGetUniqueId(&id));
  TRY(ncclCommInitRankConfig(&comm, 1, id, 0, (ncclConfig_t *)config));
  host_all_reduce(comm);
  TRY(ncclCommDestroy(comm));

  /* A wrong magic is refused whatever the form. */
  comm = NULL;
  config[8] ^= 1;
  TRY(ncclGetUniqueId(&id));
  CHECK(ncclCommInitRankConfig(&comm, 1, id, 0, (ncclConfig_t *)config) == ncclInvalidArgument,
        "a configuration with wrong magic is not refused");
  CHECK(comm == NULL, "a refused call wrote a communicator");
  free(config);
  return 0;
}
