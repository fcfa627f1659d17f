# GCCL: build, tests and tools. `make demo` and `make test` do their own set-up on a machine with Go >= 1.24, gcc and make.
SHELL := /bin/bash
.DELETE_ON_ERROR:

ROOT   := $(CURDIR)
BUILD  := build
LIB    := $(BUILD)/lib
BIN    := $(BUILD)/bin
OBJ    := $(BUILD)/obj
TOOLS  := $(ROOT)/.tools/bin
ifeq ($(origin CC),default)
CC     := gcc
endif
GO     ?= go
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
VERSION := 2.30.7

# Link-time optimisation joins the steady call, the executor and the kernels' table: some nanoseconds of a call of a hundred. Not the files
# with public symbols: gcc 12 makes their weak aliases strong then.
LTO ?= -flto=auto
CFLAGS_FRONT := -std=gnu11 -O3 -g -fPIC -fvisibility=hidden -Wall -Wextra -Werror -ffp-contract=off -pthread $(CFLAGS_EXTRA)
FRONT_SRC := $(wildcard capi/front/*.c device/host/exec/*.c device/host/reduce/*.c device/cuda/*.c)
FRONT_OBJ := $(FRONT_SRC:%.c=$(OBJ)/%.o)
FATBIN_OBJ := $(patsubst %,$(OBJ)/device/cuda/fatbin.o,$(wildcard $(BUILD)/cuda/kernels.fatbin)) # once make cuda has run
C_HEADERS := $(wildcard include/*.h include/gccl_device/*.h include/gccl_device/impl/*.h capi/*.h capi/front/*.h device/layout/*.h device/host/*/*.h device/cuda/*.h device/cuda/kernels/*.h net/*/*.h plugin/*.h plugin/*/*.h)
GO_SRC    := $(shell find capi comm algo device net internal topo plugin -name '*.go' -not -name '*_test.go' 2>/dev/null) $(wildcard topo/discover/nvml/*.[ch] net/*/*.c device/host/*/*.c plugin/*.c plugin/*/*.c) go.mod go.sum

# Go's build cache does not see C headers outside a package's own folder: their hash in a flag makes it look again.
# go-nvml calls functions that its header calls deprecated; nobody here can change that.
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations -DGCCL_HEADERS=$(shell cat $(C_HEADERS) $(wildcard device/host/*/*.c) | sha256sum | cut -c1-16)

.PHONY: all
all: build

# ---- Build -------------------------------------------------------------------------------------------------------

# Commands for users; gccl-gen is for the tree itself.
COMMANDS := $(filter-out gccl-gen,$(notdir $(patsubst %/,%,$(wildcard cmd/*/))))

.PHONY: build tools-check
build: $(LIB)/libgccl.so $(LIB)/libgccl_core.so $(LIB)/libgccl_cpu.so $(COMMANDS:%=$(BIN)/%)

# The go command of Debian 12 (1.19) fails on go.mod with a message that does not say why.
tools-check:
	@v=$$($(GO) env GOVERSION 2>/dev/null) || { echo "make: no go command: Go 1.24 or newer is needed, see https://go.dev/dl" >&2; exit 1; }; \
	  minor=$${v#go1.}; minor=$${minor%%[!0-9]*}; \
	  [[ $$v == go1.* && $$minor -ge 24 ]] || [[ $$v != go1.* ]] || { echo "make: $$v is too old: Go 1.24 or newer is needed, see https://go.dev/dl" >&2; exit 1; }
	@command -v $(firstword $(CC)) >/dev/null || { echo "make: no C compiler $(CC): install gcc (Debian: apt-get install gcc libc6-dev)" >&2; exit 1; }

$(OBJ)/device/%.o $(OBJ)/capi/front/coll.o: CFLAGS_FRONT += $(LTO)
$(OBJ)/%.o: %.c $(C_HEADERS) | tools-check
	@mkdir -p $(@D)
	@echo cc $<
	@$(CC) $(CFLAGS_FRONT) -c $< -o $@

$(LIB)/libgccl.so: $(FRONT_OBJ) $(FATBIN_OBJ) capi/front/exports.map
	@mkdir -p $(@D)
	$(CC) -shared -pthread $(LTO) -O3 $(CFLAGS_EXTRA) -Wl,-soname,libnccl.so.2 -Wl,--version-script=capi/front/exports.map -Wl,-z,nodelete -Wl,-z,defs \
	  -o $@ $(FRONT_OBJ) $(FATBIN_OBJ) -ldl
	ln -sf libgccl.so $(LIB)/libnccl.so.2
	ln -sf libgccl.so $(LIB)/libnccl.so

$(LIB)/libgccl_core.so: $(GO_SRC) $(C_HEADERS) capi/core.map | tools-check
	@mkdir -p $(@D)
	$(GO) build $(GOFLAGS_CORE) -buildmode=c-shared -ldflags '-extldflags "-Wl,--version-script=$(ROOT)/capi/core.map -Wl,-z,nodelete -Wl,-soname,libgccl_core.so"' \
	  -o $@ ./capi
	@rm -f $(LIB)/libgccl_core.h

# gccl-perf, its C rank program, and the benchmark; what gccl-info asks the library with.
include $(wildcard cmd/gccl-perf/build.mk) cmd/gccl-info/build.mk

include plugin/serve/build.mk
include device/fake/build.mk
include device/cpu/build.mk
include device/cudart/build.mk
include site/build.mk
include tests/gpu/bundle.mk
include device/cuda/build.mk

$(BIN)/%: $(GO_SRC) $(C_HEADERS) $(wildcard cmd/*/*.go) | tools-check
	@mkdir -p $(@D)
	$(GO) build -o $@ ./cmd/$*

# ---- The two commands of the README ------------------------------------------------------------------------------

# DEMO_MAX shortens the run: make demo DEMO_MAX=1M
DEMO_MAX ?= 64M
.PHONY: demo
demo: build
	$(BIN)/gccl-perf -P 4 -b 8 -e $(DEMO_MAX) -f 2 -c 1

# Packages with goroutines of their own, where the race detector has something to find, and those of them that every run checks.
RACE_PKGS ?= ./internal/... ./net/... ./comm/... ./device/host/arena ./device/host/clique
RACE_QUICK := ./internal/... ./net/bootstrap ./net/transport ./comm/... ./device/host/arena ./device/host/clique
TEST_FLAGS ?= -timeout 9m

# Everything that needs no GPU. The ordinary go test lines come last.
.PHONY: test
test: build kernels-cpu $(BIN)/kernels-check
	$(GO) test -race -short -timeout 5m $(RACE_QUICK)
	$(GO) vet ./...
	GCCL_LIB_DIR=$(ROOT)/$(LIB) $(GO) test $(TEST_FLAGS) ./...

# ---- Variants of the tests ---------------------------------------------------------------------------------------

.PHONY: test-race test-asan test-cgocheck test-checkptr test-arm64
# Not ./algo and the executor: they start no goroutines. The C executor has ThreadSanitizer, in device/host/exec/world.
test-race: | tools-check
	$(GO) test -race -short -timeout 9m $(RACE_PKGS) ./capi/... ./device/host/control ./device/lower ./device/layout ./cmd/...
	$(GO) test -run '^TestThreads$$' -short -timeout 9m ./device/host/exec/world

# The runtime's checks of pointers between Go and C: in the packages with tests, and in a core of its own under the C
# conformance program, because package capi is only ever called from C.
CGO_PKGS = $(shell $(GO) list -f '{{if and .CgoFiles (or .TestGoFiles .XTestGoFiles)}}{{.ImportPath}}{{end}}' ./...)
CGOCHECK_RUN ?= .
test-cgocheck: | tools-check
	GOEXPERIMENT=cgocheck2 $(GO) test -short -timeout 9m $(CGO_PKGS) ./comm/...
	GOEXPERIMENT=cgocheck2 $(MAKE) LIB=$(BUILD)/cgocheck/lib GOFLAGS_CORE=-gcflags=all=-d=checkptr $(BUILD)/cgocheck/lib/libgccl.so $(BUILD)/cgocheck/lib/libgccl_core.so
	GCCL_LIB_DIR=$(ROOT)/$(BUILD)/cgocheck/lib $(GO) test -count=1 -short -timeout 9m -run '$(CGOCHECK_RUN)' ./tests/hostapi

test-checkptr: | tools-check
	$(GO) test -gcflags=all=-d=checkptr -short -timeout 9m $(CGO_PKGS) ./comm/...

# The front with address and undefined-behaviour checks, in a folder of its own, under the C conformance program; then the
# Go packages with C code. The Go core stays plain: the runtime's own memory is not for the leak detector.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
ASAN_RUN ?= .
ASAN_PKGS ?= ./device/host/reduce ./device/host/exec/... ./device/host/arena ./internal/param ./net/loop ./net/shm ./net/gin
test-asan: $(LIB)/libgccl.so $(LIB)/libgccl_core.so $(LIB)/libgccl_cpu.so | tools-check
	$(MAKE) LIB=$(BUILD)/asan/lib OBJ=$(BUILD)/asan/obj CFLAGS_EXTRA="$(SANITIZE)" LTO= $(BUILD)/asan/lib/libgccl.so $(BUILD)/asan/lib/libgccl_core.so
	GCCL_LIB_DIR=$(ROOT)/$(BUILD)/asan/lib GCCL_TEST_CFLAGS="$(SANITIZE)" ASAN_OPTIONS=detect_leaks=0 \
	  $(GO) test -count=1 -short -timeout 20m -run '$(ASAN_RUN)' ./tests/hostapi
	$(GO) test -asan -short -timeout 20m $(ASAN_PKGS)
	$(GO) test -asan -short -timeout 20m -run 'TestConformance$$|Lost|Links|Fuzz|Dropped' ./net/socket ./net/trace ./net/faulty
	GCCL_LIB_DIR=$(ROOT)/$(LIB) GCCL_TEST_CXXFLAGS=-fsanitize=address ASAN_OPTIONS=detect_leaks=0 \
	  $(GO) test -count=1 -timeout 20m -run 'TestKernels/.*/.*/[123]$$|TestGin/[12]_|TestOldHeaders/.*/2_' ./tests/device ./tests/devgin

test-arm64: | tools-check
	GO="$(GO)" .ci/arm64

# The ib transport in a virtual machine with Soft-RoCE, which it makes of Debian packages; installs what is missing by apt.
.PHONY: test-rdma
test-rdma: | tools-check
	GO="$(GO)" tests/rdma/run

# ---- Lint and derived files --------------------------------------------------------------------------------------

# One version each: formatting and findings differ between versions.
GOLANGCI_VERSION := v2.15.0
CLANG_FORMAT_MAJOR := 14
C_FILES = $(shell git ls-files '*.c' '*.h' | grep -v -e '\.gen\.h$$' -e '/testdata/')
GO_FILES = $(shell git ls-files '*.go')
DERIVED := docs/env.md '*.gen.h' '*.gen.go'

$(TOOLS)/golangci-lint-$(GOLANGCI_VERSION): | tools-check
	@mkdir -p $(TOOLS)
	@echo "building golangci-lint $(GOLANGCI_VERSION) into .tools/ (once, some minutes)"
	GOBIN=$(TOOLS) CGO_CFLAGS= $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(TOOLS)/golangci-lint $@

.PHONY: lint lint-go lint-c lint-tree fmt fmt-go fmt-c generate
lint: lint-go lint-c lint-tree

lint-go: $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
	@bad=$$(gofmt -l $(GO_FILES)); [ -z "$$bad" ] || { echo "gofmt would change (make fmt-go):" $$bad >&2; exit 1; }
	$(GO) vet ./...
	$< run

lint-c:
	@command -v clang-format >/dev/null || { echo "make lint: clang-format is missing (Debian: apt-get install clang-format)" >&2; exit 1; }
	@v=$$(clang-format --version | sed 's/.*version \([0-9]*\).*/\1/'); [ "$$v" = $(CLANG_FORMAT_MAJOR) ] || \
	  { echo "make lint: clang-format $$v formats differently from version $(CLANG_FORMAT_MAJOR), which this tree uses" >&2; exit 1; }
	@bad=$$(for f in $(C_FILES); do clang-format --dry-run -Werror $$f 2>/dev/null || echo $$f; done); \
	  [ -z "$$bad" ] || { echo "clang-format would change (make fmt-c):" $$bad >&2; exit 1; }

lint-tree: generate
	git diff --exit-code -- $(DERIVED)
	$(GO) mod tidy -diff

fmt: fmt-go fmt-c
fmt-go:
	gofmt -w $(GO_FILES)
fmt-c:
	clang-format -i $(C_FILES)

generate: | tools-check
	$(GO) test -count=1 ./cmd/gccl-gen -run '^TestDerivedFilesAreFresh$$' -update

# ---- Examples, installation --------------------------------------------------------------------------------------

PLUGIN_EXAMPLES := $(notdir $(patsubst %/,%,$(wildcard examples/06_plugins/*/)))
EXAMPLES := $(sort $(patsubst examples/%/,%,$(filter-out examples/07_mpi/,$(dir $(wildcard examples/*/*.c)))))
DEVICE_EXAMPLES := $(sort $(patsubst examples/%/,%,$(dir $(wildcard examples/*/*/*.cc)))) # kernels, on the CPU
.PHONY: examples
examples: $(LIB)/libgccl.so $(LIB)/libgccl_core.so $(LIB)/libgccl_cpu.so
	@mkdir -p $(BUILD)/examples
	@set -e; for e in $(EXAMPLES); do \
	  $(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror -Iinclude examples/$$e/*.c -o $(BUILD)/examples/$$e -L$(LIB) -lnccl -pthread \
	    -Wl,-rpath,'$$ORIGIN/../lib'; \
	  echo "== $$e"; timeout 120 $(BUILD)/examples/$$e; \
	done
	@set -e; for p in $(PLUGIN_EXAMPLES); do \
	  $(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror -shared -fPIC examples/06_plugins/$$p/*.c -o $(BUILD)/examples/libnccl-$$p-example.so; \
	done
	@echo "== 02_allreduce with the tuner, the profiler and the env plugin"
	@EXAMPLE_TUNER_FILE=examples/06_plugins/tuner/rules.csv NCCL_TUNER_PLUGIN=$(BUILD)/examples/libnccl-tuner-example.so \
	  NCCL_PROFILER_PLUGIN=$(BUILD)/examples/libnccl-profiler-example.so NCCL_ENV_PLUGIN=$(BUILD)/examples/libnccl-env-example.so \
	  timeout 120 $(BUILD)/examples/02_allreduce
	@set -e; for e in $(DEVICE_EXAMPLES); do \
	  mkdir -p $(BUILD)/examples/$$(dirname $$e); \
	  $(CXX) -std=c++14 -O2 -g -Wall -Wextra -Werror -Iinclude examples/$$e/*.cc -o $(BUILD)/examples/$$e -L$(LIB) -lgccl_cpu -lnccl -pthread \
	    -Wl,-rpath,'$$ORIGIN/../../lib'; \
	  echo "== $$e"; timeout 120 $(BUILD)/examples/$$e; \
	done

	@if command -v mpicc >/dev/null && command -v mpirun >/dev/null; then \
	  mpicc -std=gnu11 -O2 -g -Wall -Wextra -Iinclude examples/07_mpi/*.c -o $(BUILD)/examples/07_mpi -L$(LIB) -lnccl -Wl,-rpath,'$$ORIGIN/../lib' && \
	  echo "== 07_mpi" && OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 timeout 120 mpirun -np 3 $(BUILD)/examples/07_mpi; \
	else echo "== 07_mpi: not run: no mpicc and mpirun (Debian: apt-get install libopenmpi-dev openmpi-bin)"; fi

.PHONY: install
install: build
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(LIBDIR)/cudart $(DESTDIR)$(INCLUDEDIR)/gccl_device/impl $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(LIB)/libgccl.so $(LIB)/libgccl_core.so $(LIB)/libgccl_cpu.so $(LIB)/libgccl-cudart.so $(LIB)/libnccl-net-gccl.so $(DESTDIR)$(LIBDIR)
	install -m 755 $(LIB)/cudart/libcudart.so.1* $(DESTDIR)$(LIBDIR)/cudart
	ln -sf ../libgccl-cudart.so $(DESTDIR)$(LIBDIR)/cudart/libcudart.so
	ln -sf libgccl.so $(DESTDIR)$(LIBDIR)/libnccl.so.2
	ln -sf libgccl.so $(DESTDIR)$(LIBDIR)/libnccl.so
	install -m 644 $(wildcard include/*.h) $(DESTDIR)$(INCLUDEDIR)
	install -m 644 $(wildcard include/gccl_device/*.h) $(DESTDIR)$(INCLUDEDIR)/gccl_device
	install -m 644 $(wildcard include/gccl_device/impl/*.h) $(DESTDIR)$(INCLUDEDIR)/gccl_device/impl
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(VERSION)|' include/nccl.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/nccl.pc
	install -m 755 $(wildcard $(BIN)/gccl-*) $(DESTDIR)$(PREFIX)/bin

# ---- Python ------------------------------------------------------------------------------------------------------

# The interpreter of the tests: Debian's own if there is one, because python3-torch is made for it.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
VENV := .venv

$(VENV)/ready: python/tests/requirements.txt
	$(PYTHON) -m venv --system-site-packages --clear $(VENV)
	$(VENV)/bin/python -m pip install -q --disable-pip-version-check -r $<
	touch $@

.PHONY: test-python bench-python examples-python wheel test-wheel
test-python: $(LIB)/libgccl.so $(LIB)/libgccl_core.so $(LIB)/libgccl_cpu.so $(LIB)/test/libcuda_fake.so kernels-cpu $(VENV)/ready
	GCCL_LIBRARY=$(ROOT)/$(LIB)/libgccl.so $(VENV)/bin/python -m pytest -c python/pyproject.toml python/tests

examples-python: $(LIB)/libgccl.so $(LIB)/libgccl_core.so $(LIB)/libgccl_cpu.so $(VENV)/ready
	@set -e; for e in examples/python/*.py; do \
	  [[ $$e != *_train.py ]] || $(VENV)/bin/python -c 'import torch' 2>/dev/null || { echo "== $$e: not run: torch is not installed"; continue; }; \
	  echo "== $$e"; PYTHONPATH=python timeout 200 $(VENV)/bin/python $$e; \
	done

# Import, cost of a call, Ctrl-C, DDP against gloo.
bench-python: $(LIB)/libgccl.so $(LIB)/libgccl_core.so $(VENV)/ready
	GCCL_LIBRARY=$(ROOT)/$(LIB)/libgccl.so $(VENV)/bin/python python/bench.py

wheel: $(LIB)/libgccl.so $(LIB)/libgccl_core.so
	@rm -f python/dist/*.whl
	$(PYTHON) python/backend.py python/dist

# The wheel in an empty environment, away from this tree.
test-wheel: wheel
	rm -rf $(BUILD)/wheel-venv
	$(PYTHON) -m venv $(BUILD)/wheel-venv
	$(BUILD)/wheel-venv/bin/python -m pip install -q --disable-pip-version-check --no-index python/dist/*.whl
	cd / && env -u GCCL_LIBRARY -u PYTHONPATH $(ROOT)/$(BUILD)/wheel-venv/bin/python -m gccl.demo -e 1000000
	cd / && $(ROOT)/$(BUILD)/wheel-venv/bin/python -c 'import gccl; i = gccl.library_info(); print(i); assert i.loaded_by == "in the package"'

# ---- All of it ---------------------------------------------------------------------------------------------------

# What .ci/run runs, in one go and without installing anything.
.PHONY: check clean
check: test test-python lint examples examples-python test-wheel test-race test-cgocheck test-asan test-arm64

clean:
	rm -rf $(BUILD)
