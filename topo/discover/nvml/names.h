/* The driver's management library behind go-nvml's calls. */
#ifndef GCCL_NVML_NAMES_H
#define GCCL_NVML_NAMES_H

/* Opens the library and has the calls reach it. Gives the reason if it cannot be opened, valid until this thread's next dl call. Calls
 * of go-nvml before it has succeeded return an error code. Not to be called by two threads at once. */
const char *gccl_nvml_bind(const char *library);

#endif
