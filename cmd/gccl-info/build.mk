# The program by which gccl-info asks the library. Links by the SONAME, and finds the library from its own place.
$(BIN)/gccl-info: $(BIN)/gccl-info-probe
$(BIN)/gccl-info-probe: cmd/gccl-info/probe/probe.c $(wildcard include/*.h) $(LIB)/libgccl.so
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror -Iinclude -o $@ $< -L$(LIB) -l:libnccl.so.2 -Wl,-rpath,'$$ORIGIN/../lib' -pthread
