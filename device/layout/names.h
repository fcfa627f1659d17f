/* What calls are named in texts, by enum gccl_coll, ncclDataType_t and enum of operators (device/host/exec/exec.h). */
#ifndef GCCL_LAYOUT_NAMES_H
#define GCCL_LAYOUT_NAMES_H

__attribute__((unused)) static const char *const gccl_coll_names[] = {"all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce",
                                                                      "all-to-all", "gather",         "scatter",    "send/recv"};
__attribute__((unused)) static const char *const gccl_type_names[] = {
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};
__attribute__((unused)) static const char *const gccl_red_names[] = {"sum", "prod", "max", "min", "avg", "premulsum"};

#endif
