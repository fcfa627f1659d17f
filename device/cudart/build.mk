# The CUDA runtime over host memory. libgccl-cudart.so is what programs link; the folder cudart has it under the runtime's own names,
# with the symbol versions that programs linked with NVIDIA's library ask for.
#
# make cudart-headers   fetches NVIDIA's public runtime headers of CUDA 12 and 13 as wheels into .tools: for tests/cudart

CUDART_SRC := $(wildcard device/cudart/*.c)
CUDART_VERSION_12 := 12080
CUDART_VERSION_13 := 13000
CUDART_WHEELS_12 := nvidia-cuda-runtime-cu12==12.8.90 nvidia-cuda-nvcc-cu12==12.8.93 nvidia-cuda-cccl-cu12==12.8.90
CUDART_WHEELS_13 := nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85

.PHONY: cudart cudart-headers
cudart: $(LIB)/libgccl-cudart.so $(LIB)/cudart/libcudart.so.12 $(LIB)/cudart/libcudart.so.13
build: cudart

# $(1) version that cudaRuntimeGetVersion tells, $(2) SONAME, $(3) further options.
define cudart_link
@mkdir -p $(@D)
$(CC) -std=gnu11 -O2 -g -fPIC -fvisibility=hidden -Wall -Wextra -Werror -pthread $(CFLAGS_EXTRA) -DCUDART_VERSION_OF_LINK=$(1) -shared \
  -Wl,-soname,$(2) -Wl,-z,defs $(3) -o $@ $(CUDART_SRC) -L$(LIB) -l:libnccl.so.2 -Wl,-rpath,'$$ORIGIN:$$ORIGIN/..'
endef

CUDART_DEPS := $(CUDART_SRC) $(wildcard device/cudart/*.h device/cudart/*.map) $(LIB)/libgccl.so
$(LIB)/libgccl-cudart.so: $(CUDART_DEPS) | tools-check
	$(call cudart_link,$(CUDART_VERSION_12),libgccl-cudart.so,)
	@mkdir -p $(LIB)/cudart
	@ln -sf ../libgccl-cudart.so $(LIB)/cudart/libcudart.so
$(LIB)/cudart/libcudart.so.%: $(CUDART_DEPS) | tools-check
	$(call cudart_link,$(CUDART_VERSION_$(*)),libcudart.so.$(*),-Wl$(comma)--version-script=device/cudart/cudart$(*).map)

comma := ,

.PHONY: test-cudart
test-cudart: cudart $(LIB)/libgccl_core.so cudart-headers
	GCCL_NEED_CUDART=1 GCCL_LIB_DIR=$(ROOT)/$(LIB) $(GO) test -count=1 ./tests/cudart

# Tests look for the folders .tools/cudart-12 and .tools/cudart-13.
cudart-headers: .tools/cudart-12/ready .tools/cudart-13/ready
.tools/cudart-%/ready:
	@rm -rf .tools/cudart-$(*)
	python3 -m pip install --quiet --no-deps --target .tools/cudart-$(*) $(CUDART_WHEELS_$(*))
	@mkdir -p .tools/cudart-$(*)/include && cp -r .tools/cudart-$(*)/nvidia/*/include/. .tools/cudart-$(*)/include/
	@rm -rf .tools/cudart-$(*)/nvidia && touch $@
