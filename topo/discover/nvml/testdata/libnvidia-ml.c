/* An old driver's library in miniature: one GPU, without most functions. */
#include <stdio.h>
#include <string.h>

int nvmlInit_v2(void) {
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* n) {
  *n = 1;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = (void*)(unsigned long)(index + 17);
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  snprintf(uuid, length, "GPU-%lu", (unsigned long)device);
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  (void)device;
  *major = 9;
  *minor = 0;
  return 0;
}
const char* nvmlErrorString(int code) {
  (void)code;
  return "text of the driver";
}
