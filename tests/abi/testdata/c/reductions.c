/* Prints "type operator result" for an all-reduce of two ranks on host memory with each pair. */
#include "host_rank.h"

int main(void) {
  static const char *const types[] = {"int8",    "uint8",   "int32",   "uint32",   "int64",      "uint64",
                                      "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};
  static const char *const ops[] = {"sum", "prod", "max", "min", "avg", "premulsum"};
  ncclComm_t comm[2];
  TRY(gcclSetDeviceKind(gcclDeviceHost));
  TRY(ncclCommInitAll(comm, 2, NULL));
  for (int t = 0; t < ncclNumTypes; t++)
    for (int o = 0; o <= ncclNumOps; o++) {
      static unsigned char buffer[2][64], scalar[8];
      ncclRedOp_t op[2] = {(ncclRedOp_t)o, (ncclRedOp_t)o};
      ncclResult_t rc = ncclSuccess;
      for (int r = 0; r < 2 && o == ncclNumOps && rc == ncclSuccess; r++)
        rc = ncclRedOpCreatePreMulSum(&op[r], scalar, (ncclDataType_t)t, ncclScalarHostImmediate, comm[r]);
      if (rc == ncclSuccess) {
        TRY(ncclGroupStart());
        for (int r = 0; r < 2; r++) ncclAllReduce(buffer[r], buffer[r], 3, (ncclDataType_t)t, op[r], comm[r], NULL);
        rc = ncclGroupEnd();
      }
      printf("%s %s %s\n", types[t], ops[o], rc == ncclSuccess ? "yes" : ncclGetErrorString(rc));
      for (int r = 0; r < 2 && o == ncclNumOps && rc == ncclSuccess; r++) TRY(ncclRedOpDestroy(op[r], comm[r]));
    }
  for (int r = 0; r < 2; r++) TRY(ncclCommDestroy(comm[r]));
  return 0;
}
