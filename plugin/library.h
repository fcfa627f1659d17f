#ifndef GCCL_PLUGIN_LIBRARY_H
#define GCCL_PLUGIN_LIBRARY_H

enum { GCCL_PLUGIN_TEXT = 1024 };

/* Opens a library (NULL: the main program), as NCCL does: all symbols at once, none for others. path and why have GCCL_PLUGIN_TEXT
 * bytes: where it was found, if the loader says so, and its words if it was not. */
void *gccl_plugin_open(const char *name, char *path, char *why);

#endif
