# make gpu-bundle: what a GPU machine without Go needs, in one folder: the library, test programs, scripts, and nccl-tests' source if
# NCCL_TESTS_SRC names a folder that has it (never part of this repository). tests/gpu/run.sh and run-multi.sh run it there.
GPU_BUNDLE := $(BUILD)/gpu-bundle
GPU_PROGS := hostapi cuda
NCCL_TESTS_SRC ?=
CHOST := $(wildcard tests/internal/chost/*.c)

# Programs of the conformance suites: libnccl.so.2 comes from LD_LIBRARY_PATH there.
define gpu_program
$(GPU_BUNDLE)/bin/$(1): $(wildcard tests/$(1)/prog/*.[ch]) $(CHOST) $(wildcard tests/internal/chost/*.h include/*.h) $(LIB)/libgccl.so
	@mkdir -p $$(@D)
	$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror -ffp-contract=off -pthread -Iinclude -Itests/internal/chost -Itests/$(1)/prog \
	  tests/$(1)/prog/*.c $(CHOST) -o $$@ -L$(LIB) -l:libnccl.so.2 -lm -ldl
endef
$(foreach p,$(GPU_PROGS),$(eval $(call gpu_program,$(p))))

# The suites of the device API, whose kernels come from a file there: bin/device --cubin lib/full-90.cubin --suite barriers --ranks 2
GPU_SUITES := device devgin
define gpu_suites
$(GPU_BUNDLE)/bin/$(1): $(wildcard tests/$(1)/prog/*.cc tests/$(1)/prog/*.h include/gccl_device/*.h include/gccl_device/impl/*.h) tests/internal/place/place.h $(LIB)/libgccl.so
	@mkdir -p $$(@D)
	$(CXX) -std=c++14 -O1 -g -Wall -Wextra -Werror -pthread -static-libstdc++ -Iinclude tests/$(1)/prog/*.cc -o $$@ -L$(LIB) -lgccl_cpu -l:libnccl.so.2 -ldl
endef
$(foreach p,$(GPU_SUITES),$(eval $(call gpu_suites,$(p))))

# Plain TCP beside the plugin, called as NCCL does.
$(GPU_BUNDLE)/bin/netspeed: tests/netplugin/prog/speed.c tests/netplugin/prog/net.h plugin/net/abi.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror $< -o $@ -ldl
# Preloaded into programs of others, so that their ranks share a GPU.
$(GPU_BUNDLE)/lib/onedevice.so: tests/gpu/onedevice.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC $< -o $@ -ldl
GPU_OTHERS := $(GPU_BUNDLE)/bin/netspeed $(GPU_BUNDLE)/lib/onedevice.so

.PHONY: gpu-bundle
gpu-bundle: cuda build $(BIN)/kernels-check $(GPU_PROGS:%=$(GPU_BUNDLE)/bin/%) $(GPU_OTHERS)
	@$(MAKE) --no-print-directory gpu-bundle-files

# The same without the kernels of the GPU, to try the scripts over device/fake.
.PHONY: gpu-bundle-files
gpu-bundle-files: $(GPU_PROGS:%=$(GPU_BUNDLE)/bin/%) $(GPU_SUITES:%=$(GPU_BUNDLE)/bin/%) $(GPU_OTHERS)
	@mkdir -p $(GPU_BUNDLE)/lib $(GPU_BUNDLE)/bin $(GPU_BUNDLE)/include
	@install -m 755 $(LIB)/libgccl.so $(LIB)/libgccl_core.so $(LIB)/libgccl_cpu.so $(LIB)/libnccl-net-gccl.so $(GPU_BUNDLE)/lib
	@for f in full-90 gin-90; do [ ! -e $(CUDA)/device/$$f.cubin ] || install -m 644 $(CUDA)/device/$$f.cubin $(GPU_BUNDLE)/lib; done
	@strip --strip-debug $(GPU_BUNDLE)/lib/*.so
	@for p in gccl-info gccl-info-probe gccl-doctor gccl-top gccl-topo kernels-check; do [ ! -e $(BIN)/$$p ] || install -s -m 755 $(BIN)/$$p $(GPU_BUNDLE)/bin; done
	@[ ! -e $(BUILD)/cuda/kernels.fatbin ] || xz -6 -c $(BUILD)/cuda/kernels.fatbin > $(GPU_BUNDLE)/lib/kernels.fatbin.xz
	@cp -r include/. $(GPU_BUNDLE)/include
	@cp -r tests/gpu/*.sh tests/gpu/*.py tests/gpu/*.cu tests/gpu/torch $(GPU_BUNDLE)/
	@mkdir -p $(GPU_BUNDLE)/python && cp -r python/gccl python/tests $(GPU_BUNDLE)/python/ && rm -rf $(GPU_BUNDLE)/python/gccl/lib
	@mkdir -p $(GPU_BUNDLE)/examples && cp -r examples/python $(GPU_BUNDLE)/examples/
	@rm -rf $(GPU_BUNDLE)/nccl-tests && find $(GPU_BUNDLE) -name __pycache__ -prune -exec rm -rf {} +
	@[ -z "$(NCCL_TESTS_SRC)" ] || { mkdir -p $(GPU_BUNDLE)/nccl-tests && cp -r $(NCCL_TESTS_SRC)/. $(GPU_BUNDLE)/nccl-tests/ && rm -rf $(GPU_BUNDLE)/nccl-tests/.git; }
	@{ git rev-parse --short HEAD; git diff --quiet HEAD || echo "and changes"; } 2>/dev/null | paste -sd' ' > $(GPU_BUNDLE)/COMMIT
	@mib=$$(du -sm $(GPU_BUNDLE) | cut -f1); echo "$(GPU_BUNDLE): $$mib MiB"; \
	  [ $$mib -lt 60 ] || { echo "make gpu-bundle: $$mib MiB is more than the 60 that a GPU machine takes" >&2; exit 1; }
