# The CUDA kernels: toolchain, fat binary, and their form for the CPU.
#
# make cuda-toolchain   fetches the compiler as wheels into .tools/cuda, unless a toolkit 12.8 or a later 12 is installed
# make cuda             compiles all kernels and puts them into libgccl.so
# make nvcc-toolchain   fetches an nvcc as wheels into .tools/nvcc, unless NVCC names one
# make device-header-nvcc  compiles the device API's header with it
# make kernels-cpu      the kernels compiled by g++, for tests and device/fake
#
# make build compiles no kernels by itself; once make cuda has run, it keeps them up to date.

CUDA        := $(BUILD)/cuda
CUDA_ARCHS  := 80 90 100
CUDA_PTX    := 80
cuda_virtual = $(if $(filter 80,$(1)),80,90) # the PTX that an architecture's code is made from: the sources know two of them
CUDA_VIRTUAL := $(sort $(foreach a,$(CUDA_ARCHS) $(CUDA_PTX),$(call cuda_virtual,$(a))))
CUDA_TYPES  := i8 u8 i32 u32 i64 u64 f16 f32 f64 bf16 f8e4m3 f8e5m2
CUDA_UNITS  := $(foreach k,leader direct ll,$(CUDA_TYPES:%=$(k)_fold-%) $(k)_copy) multimem wait
CUDA_HEADERS := $(wildcard device/cuda/kernels/*.cuh device/cuda/nvrtc/*.h device/layout/*.h device/host/reduce/convert.h)
CUDA_WHEELS := nvidia-cuda-nvrtc-cu12==12.8.93 nvidia-cuda-nvcc-cu12==12.8.93 nvidia-nvfatbin-cu12==12.8.90 \
  nvidia-cuda-cccl-cu12==12.8.90 nvidia-cuda-runtime-cu12==12.8.90
CUDA_FLAGS  := -std=c++17 --fmad=false -default-device -Idevice/cuda/nvrtc
CPU_FLAGS   := -std=c++17 -O0 -g -fPIC -fvisibility=default -ffp-contract=off -Wall -Wextra -Werror -Wno-unknown-pragmas -x c++ -include device/cuda/kernels/cpu.h

# unit-type → the source's stem, and what the type means to it.
cuda_source = device/cuda/kernels/$(firstword $(subst -, ,$(1))).cu
cuda_type   = $(word 2,$(subst -, ,$(1)))
cuda_define = $(if $(cuda_type),-DGCCL_TYPE=$(cuda_type) $(if $(filter i% u%,$(cuda_type)),-DGCCL_TYPE_IS_INTEGER))
cuda_tool   = $$(device/cuda/build/toolchain | sed -n 's/^$(1) //p')

.PHONY: cuda cuda-toolchain cuda-toolchain-check kernels-cpu
cuda-toolchain:
	@device/cuda/build/toolchain >/dev/null || { rm -rf .tools/cuda.part && \
	  python3 -m pip install --quiet --no-deps --target .tools/cuda.part $(CUDA_WHEELS) && rm -rf .tools/cuda && mv .tools/cuda.part .tools/cuda; }
	@device/cuda/build/toolchain

cuda-toolchain-check:
	@device/cuda/build/toolchain >/dev/null || { echo "make: no CUDA compiler: make cuda-toolchain fetches one into .tools/cuda" \
	  "(a toolkit 12.8 or a later 12, by nvcc on PATH or CUDA_HOME, is used if there is one)" >&2; exit 1; }

# The limit on the size is the project's; the bounds keep a kernel from growing unseen.
CUDA_MOST_BYTES := 20971520
cuda: $(CUDA)/kernels.fatbin device-header-cuda
	@device/cuda/build/report device/cuda/build/bounds $(CUDA_ARCHS:%=$(CUDA)/sm_%.report)
	@[ $$(stat -c %s $<) -le $(CUDA_MOST_BYTES) ] || { echo "make cuda: $< has $$(stat -c %s $<) bytes, more than $(CUDA_MOST_BYTES)" >&2; exit 1; }
	@$(MAKE) --no-print-directory $(LIB)/libgccl.so
	@echo "kernels for $(CUDA_ARCHS:%=sm_%), PTX for $(CUDA_PTX:%=compute_%): $$(stat -c %s $<) bytes"

$(CUDA)/kernelc: device/cuda/build/kernelc.c
	@mkdir -p $(@D)
	@$(CC) -O2 -Wall -Wextra -Werror $< -o $@ -ldl

# One unit for one architecture.
define cuda_unit
$(CUDA)/$(2)/$(1).ptx: $(call cuda_source,$(1)) $(CUDA_HEADERS) $(CUDA)/kernelc | cuda-toolchain-check
	@mkdir -p $$(@D)
	@echo nvrtc $(1) compute_$(2)
	@$(CUDA)/kernelc ptx "$$(call cuda_tool,nvrtc)" $$@ $$< -arch=compute_$(2) $(CUDA_FLAGS) $(call cuda_define,$(1))
endef
$(foreach a,$(CUDA_VIRTUAL),$(foreach u,$(CUDA_UNITS),$(eval $(call cuda_unit,$(u),$(a)))))

# All units in one module: their PTX one after another under the first one's directives. Kernels are all that is global in them.
define cuda_module
$(CUDA)/compute_$(1).ptx: $(CUDA_UNITS:%=$(CUDA)/$(1)/%.ptx)
	@awk '/^\.(version|target|address_size)/ { if (seen[$$$$1]++) next } { print }' $$^ > $$@
endef
$(foreach a,$(CUDA_VIRTUAL),$(eval $(call cuda_module,$(a))))

define cuda_code
$(CUDA)/sm_$(1).cubin: $(CUDA)/compute_$(strip $(call cuda_virtual,$(1))).ptx
	@echo ptxas sm_$(1)
	@"$$(call cuda_tool,ptxas)" -v -arch=sm_$(1) $$< -o $$@ 2> $(CUDA)/sm_$(1).report || { cat $(CUDA)/sm_$(1).report >&2; exit 1; }
endef
$(foreach a,$(CUDA_ARCHS),$(eval $(call cuda_code,$(a))))

$(CUDA)/kernels.fatbin: $(CUDA_ARCHS:%=$(CUDA)/sm_%.cubin) $(CUDA_PTX:%=$(CUDA)/compute_%.ptx)
	@$(CUDA)/kernelc fatbin "$(call cuda_tool,nvfatbin)" $@ $(foreach a,$(CUDA_ARCHS),sm_$(a)=$(CUDA)/sm_$(a).cubin) \
	  $(foreach a,$(CUDA_PTX),compute_$(a)=$(CUDA)/compute_$(a).ptx)

$(OBJ)/device/cuda/fatbin.o: device/cuda/build/fatbin.S $(CUDA)/kernels.fatbin
	@mkdir -p $(@D)
	$(CC) -c -DGCCL_FATBIN='"$(CUDA)/kernels.fatbin"' $< -o $@

# ---- The device API's header: the kernels of tests/device and tests/devgin, as CUDA ----------------------------------

# name architecture options: with nothing but NVRTC, checked, and with libcu++ and the types of cuda_fp16.h as most programs have them.
DEVICE_FORMS := bare-80 debug-90 full-90 gin-90
DEVICE_HEADERS := $(wildcard include/*.h include/gccl_device/*.h include/gccl_device/impl/*.h) tests/device/prog/kernels.h tests/devgin/prog/kernels.h
device_source = $(if $(filter gin-%,$(1)),tests/devgin,tests/device)/prog/kernels.h
device_flags_bare  := -std=c++14
device_flags_debug := -std=c++14 -DGCCL_DEVICE_DEBUG
device_flags_full  := -std=c++17 $$(device/cuda/build/toolchain | sed -n 's/^include /-I/p')
device_flags_gin   := $(device_flags_full)

.PHONY: device-header-cuda
device-header-cuda: $(DEVICE_FORMS:%=$(CUDA)/device/%.cubin)

define device_form
$(CUDA)/device/$(1).cubin: $(DEVICE_HEADERS) $(CUDA)/kernelc device/cuda/build/toolchain | cuda-toolchain-check
	@mkdir -p $$(@D)
	@echo nvrtc gccl_device.h $(1)
	@$(CUDA)/kernelc ptx "$$(call cuda_tool,nvrtc)" $(CUDA)/device/$(1).ptx $(call device_source,$(1)) -default-device -Iinclude \
	  -arch=compute_$(lastword $(subst -, ,$(1))) $$(device_flags_$(firstword $(subst -, ,$(1))))
	@"$$(call cuda_tool,ptxas)" -arch=sm_$(lastword $(subst -, ,$(1))) $(CUDA)/device/$(1).ptx -o $$@
endef
$(foreach f,$(DEVICE_FORMS),$(eval $(call device_form,$(f))))

# The same by nvcc, which compiles for the host too, and passes on what NVRTC never sees. CUDA 13's is on PyPI.
NVCC_WHEELS := nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
NVCC ?= .tools/nvcc/nvidia/cu13/bin/nvcc

.PHONY: nvcc-toolchain device-header-nvcc
nvcc-toolchain:
	@command -v $(NVCC) >/dev/null || { rm -rf .tools/nvcc && python3 -m pip install --quiet --no-deps --target .tools/nvcc $(NVCC_WHEELS) && chmod -R u+x .tools/nvcc/nvidia/cu13/bin .tools/nvcc/nvidia/cu13/nvvm/bin; }
	@$(NVCC) --version | tail -2 | head -1

device-header-nvcc: $(CUDA)/device/nvcc-device.o $(CUDA)/device/nvcc-devgin.o
$(CUDA)/device/nvcc-%.o: tests/%/prog/kernels.h $(DEVICE_HEADERS)
	@command -v $(NVCC) >/dev/null || { echo "make: no nvcc: make nvcc-toolchain fetches one into .tools/nvcc, or name one by NVCC=" >&2; exit 1; }
	@mkdir -p $(@D)
	@echo nvcc gccl_device.h $*
	@$(NVCC) -x cu -std=c++17 -arch=sm_90 -Iinclude -c $< -o $@

# ---- For the CPU -------------------------------------------------------------------------------------------------

kernels-cpu: $(LIB)/libgccl_kernels_cpu.so

define cpu_unit
$(CUDA)/cpu/$(1).o: $(call cuda_source,$(1)) $(CUDA_HEADERS) device/cuda/kernels/cpu.h
	@mkdir -p $$(@D)
	@echo g++ $(1)
	@$(CXX) $(CPU_FLAGS) $(CFLAGS_EXTRA) $(call cuda_define,$(1)) -c $$< -o $$@
endef
$(foreach u,$(CUDA_UNITS),$(eval $(call cpu_unit,$(u))))

$(LIB)/libgccl_kernels_cpu.so: $(CUDA_UNITS:%=$(CUDA)/cpu/%.o)
	@mkdir -p $(@D)
	$(CXX) -shared -pthread $(CFLAGS_EXTRA) -o $@ $^

# ---- The check of both forms (tests/gpu/kernels) -----------------------------------------------------------------

KERNELS_CHECK_SRC := $(wildcard tests/gpu/kernels/prog/*.c device/host/reduce/*.c)
$(BIN)/kernels-check: $(KERNELS_CHECK_SRC) $(wildcard tests/gpu/kernels/prog/*.h) $(C_HEADERS) device/cuda/driver.h device/cuda/kernels/kernels.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror $(CFLAGS_EXTRA) $(KERNELS_CHECK_SRC) -o $@ -ldl -pthread
