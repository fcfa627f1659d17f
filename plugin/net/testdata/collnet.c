/* A collnet table beside the net table of the example. */
__attribute__((visibility("default"))) void *const ncclCollNetPlugin_v10[18] = {"Coll"};
