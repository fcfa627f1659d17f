# gccl-perf, its rank program, and the benchmark. Included by the Makefile, which sets BIN, LIB, CC and GO.

PERF_RANK_SRC := $(wildcard cmd/gccl-perf/rank/*.c)

$(BIN)/gccl-perf: $(wildcard cmd/gccl-perf/*.go algo/*/*.go) $(BIN)/gccl-perf-rank go.mod go.sum
	@mkdir -p $(@D)
	$(GO) build -o $@ ./cmd/gccl-perf

# Links by the SONAME, as a program built for NCCL does, and finds the library from its own place.
$(BIN)/gccl-perf-rank: $(PERF_RANK_SRC) $(wildcard cmd/gccl-perf/rank/*.h include/*.h) $(LIB)/libgccl.so
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O3 -g -Wall -Wextra -Werror -Iinclude -o $@ $(PERF_RANK_SRC) -L$(LIB) -l:libnccl.so.2 \
	  -Wl,-rpath,'$$ORIGIN/../lib' -pthread -lm

$(BIN)/gccl-bench: $(wildcard tests/perf/bench/*.go algo/*/*.go) go.mod go.sum
	@mkdir -p $(@D)
	$(GO) build -o $@ ./tests/perf/bench

.PHONY: bench
bench: $(BIN)/gccl-bench $(BIN)/gccl-perf $(LIB)/libgccl_core.so
	$(BIN)/gccl-bench $(BENCH_FLAGS)
