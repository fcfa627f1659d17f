# The stand-in for libcuda.so.1: for tests only, never installed. Its folder has it under the driver's name too.
FAKE_DIR := $(LIB)/test

.PHONY: fake
fake: $(FAKE_DIR)/libcuda_fake.so
build: fake

$(FAKE_DIR)/libcuda_fake.so: $(wildcard device/fake/*.[ch]) device/cuda/driver.h device/fake/exports.map | tools-check
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -fPIC -Wall -Wextra -Werror -pthread $(CFLAGS_EXTRA) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,defs \
	  -Wl,--version-script=device/fake/exports.map -o $@ $(wildcard device/fake/*.c) -ldl
	ln -sf libcuda_fake.so $(@D)/libcuda.so.1
