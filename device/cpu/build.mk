# libgccl_cpu: kernels of gccl_device.h on the CPU. A library of its own: programs that launch no kernels do not need it.
CPU_RUNTIME_SRC := $(wildcard device/cpu/*.c)

$(LIB)/libgccl_cpu.so: $(CPU_RUNTIME_SRC) $(wildcard device/cpu/*.h) include/gccl_device/impl/cpu_runtime.h | tools-check
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror -pthread -Wl,-soname,libgccl_cpu.so -Wl,-z,nodelete \
	  $(CPU_RUNTIME_SRC) -o $@
