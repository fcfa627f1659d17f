/* A signal handler that only says that the signal came. */
#ifndef GCCL_ONSIGNAL_H
#define GCCL_ONSIGNAL_H

/* Installs the handler; returns a nonblocking descriptor that becomes readable at each signal (eventfd(2)), or -1 with errno. */
int gccl_onsignal_install(int sig);

#endif
