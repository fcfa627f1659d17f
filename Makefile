# GCCL: build, tests and tools. `make demo` and `make test` do their own set-up on a machine with Go >= 1.24, gcc and make.
SHELL := /bin/bash
.DELETE_ON_ERROR:

ROOT   := $(CURDIR)
BUILD  := build
LIB    := $(BUILD)/lib
BIN    := $(BUILD)/bin
OBJ    := $(BUILD)/obj
CC     ?= gcc
GO     ?= go
PREFIX ?= /usr/local
VERSION := 2.30.7

CFLAGS_FRONT := -std=gnu11 -O3 -g -fPIC -fvisibility=hidden -Wall -Wextra -Werror -ffp-contract=off -pthread $(CFLAGS_EXTRA)
FRONT_SRC := $(wildcard capi/front/*.c device/host/exec/*.c device/host/reduce/*.c)
FRONT_OBJ := $(FRONT_SRC:%.c=$(OBJ)/%.o)
C_HEADERS := $(wildcard include/*.h capi/*.h capi/front/*.h device/layout/*.h device/host/*/*.h)
GO_SRC    := $(shell find capi comm algo device net internal topo plugin -name '*.go' -not -name '*_test.go' 2>/dev/null) go.mod go.sum

# Go's build cache does not see C headers outside a package's own folder: their hash in a flag makes it look again.
export CGO_CFLAGS := -O2 -g -DGCCL_HEADERS=$(shell cat $(C_HEADERS) $(wildcard device/host/*/*.c) | sha256sum | cut -c1-16)

.PHONY: all build
all: build

build: $(LIB)/libgccl.so $(LIB)/libgccl_core.so $(BIN)/gccl-perf $(BIN)/gccl-info $(BIN)/gccl-plan

$(OBJ)/%.o: %.c $(C_HEADERS)
	@mkdir -p $(@D)
	@echo cc $<
	@$(CC) $(CFLAGS_FRONT) -c $< -o $@

$(LIB)/libgccl.so: $(FRONT_OBJ) capi/front/exports.map
	@mkdir -p $(@D)
	$(CC) -shared -pthread $(CFLAGS_EXTRA) -Wl,-soname,libnccl.so.2 -Wl,--version-script=capi/front/exports.map -Wl,-z,nodelete -Wl,-z,defs \
	  -o $@ $(FRONT_OBJ) -ldl
	ln -sf libgccl.so $(LIB)/libnccl.so.2
	ln -sf libgccl.so $(LIB)/libnccl.so

$(LIB)/libgccl_core.so: $(GO_SRC) $(C_HEADERS)
	@mkdir -p $(@D)
	$(GO) build -buildmode=c-shared -ldflags '-extldflags "-Wl,--version-script=$(ROOT)/capi/core.map -Wl,-z,nodelete -Wl,-soname,libgccl_core.so"' \
	  -o $@ ./capi
	@rm -f $(LIB)/libgccl_core.h
