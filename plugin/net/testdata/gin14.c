/* A gin table of v14: a host has nothing to call in it. */
__attribute__((visibility("default"))) void *const ncclGinPlugin_v14[17] = {"Kernels"};
