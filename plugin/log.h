#ifndef GCCL_PLUGIN_LOG_H
#define GCCL_PLUGIN_LOG_H

void *gccl_plugin_log_function(void);
void gccl_plugin_log_limit(int level); /* lines of higher levels are not even formatted */

#endif
