/* See stdint.h beside this. size_t is NVRTC's own. */
#ifndef GCCL_NVRTC_STDDEF_H
#define GCCL_NVRTC_STDDEF_H
#define offsetof(type, member) __INTADDR__(&(((type *)0)->member)) /* the constant form of its front end */
#endif
