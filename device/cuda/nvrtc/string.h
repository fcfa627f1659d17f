/* See stdint.h beside this. memcpy is NVRTC's own. */
