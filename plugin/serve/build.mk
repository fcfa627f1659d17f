# This library's network as a net plugin of NCCL.
build: $(LIB)/libnccl-net-gccl.so
$(LIB)/libnccl-net-gccl.so: $(GO_SRC) $(C_HEADERS) $(wildcard plugin/*/*.c) plugin/serve/exports.map | tools-check
	@mkdir -p $(@D)
	$(GO) build -buildmode=c-shared -ldflags '-extldflags "-Wl,--version-script=$(ROOT)/plugin/serve/exports.map -Wl,-z,nodelete -Wl,-soname,$(@F)"' \
	  -o $@ ./plugin/serve
	@rm -f $(LIB)/libnccl-net-gccl.h
