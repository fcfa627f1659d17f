package plugin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	long := strings.Repeat("x", 300)
	many := strings.TrimSuffix(strings.Repeat("a,", 20), ",")
	for _, c := range []struct {
		kind  Kind
		value string
		set   bool
		want  string
	}{
		{Net, "", false, "[{[libnccl-net.so] false}]"},
		{Gin, "", false, "[{[libnccl-gin.so] false}]"},
		{Net, "", true, "[]"},
		{Gin, "", true, "[]"},
		{Tuner, "", true, "[{[libnccl-tuner.so] false}]"},
		{Net, "none", true, "[]"},
		{Profiler, "NONE", true, "[]"},
		{Net, "foo", true, "[{[foo libnccl-net-foo.so] true}]"},
		{Net, "libfoo.so", true, "[{[libfoo.so] true}]"},
		{Net, "/x/foo", true, "[{[/x/foo] true}]"},
		{Net, "foo.so", true, "[{[foo.so libnccl-net-foo.so.so] true}]"},
		{Net, "libfoo", true, "[{[libfoo libnccl-net-libfoo.so] true}]"},
		{Net, "a,b", true, "[{[a libnccl-net-a.so] true} {[b libnccl-net-b.so] true}]"},
		{Net, "a,,none,b", true, "[{[a libnccl-net-a.so] true} {[b libnccl-net-b.so] true}]"},
		{Net, "a," + long, true, "[{[a libnccl-net-a.so] true}]"},
		{Tuner, "a,b", true, "[{[a,b libnccl-tuner-a,b.so] true}]"},
		{Env, "s", true, "[{[] true}]"},
		{Env, "static_plugin", true, "[{[] true}]"},
		{Env, "STATIC_PLUGINS", true, "[{[STATIC_PLUGINS libnccl-env-STATIC_PLUGINS.so] true}]"},
		{Profiler, long, true, fmt.Sprintf("[{[%s %s] true}]", long[:254], ("libnccl-profiler-" + long)[:254])},
	} {
		if got := fmt.Sprint(resolve(c.kind, c.value, c.set)); got != c.want {
			t.Errorf("%v %q (set %v): %s, want %s", c.kind, c.value, c.set, got, c.want)
		}
	}
	for kind, want := range map[Kind]int{Net: 14, Gin: 13, Rma: 13} {
		if got := len(resolve(kind, many, true)); got != want {
			t.Errorf("%v takes %d entries, want %d", kind, got, want)
		}
	}
}

func TestSymbols(t *testing.T) {
	for kind, want := range map[Kind]string{
		Net:      "ncclNetPlugin_v12 ncclNetPlugin_v11 ncclNetPlugin_v10 ncclNetPlugin_v9 ncclNetPlugin_v8 ncclNetPlugin_v7 ncclNetPlugin_v6",
		Gin:      "ncclGinPlugin_v14 ncclGinPlugin_v13",
		Rma:      "ncclRmaPlugin_v14 ncclRmaPlugin_v13 ncclGinPlugin_v13",
		Tuner:    "ncclTunerPlugin_v6 ncclTunerPlugin_v5 ncclTunerPlugin_v4 ncclTunerPlugin_v3 ncclTunerPlugin_v2",
		Profiler: "ncclProfiler_v6 ncclProfiler_v5 ncclProfiler_v4 ncclProfiler_v3 ncclProfiler_v2 ncclProfiler_v1",
		Env:      "ncclEnvPlugin_v2 ncclEnvPlugin_v1",
	} {
		var names []string
		for _, s := range kind.symbols() {
			names = append(names, s.name)
		}
		if !slices.Equal(names, strings.Fields(want)) {
			t.Errorf("%v: %v", kind, names)
		}
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("a,b,none", 0)
	f.Add("STATIC", 4)
	f.Fuzz(func(t *testing.T, value string, k int) {
		kind := Kind(uint(k) % uint(len(kinds)))
		for _, w := range resolve(kind, value, true) {
			if len(w.tries) == 0 || len(w.tries) > 2 {
				t.Fatalf("%q: %d tries", value, len(w.tries))
			}
			for _, name := range w.tries {
				if len(name) > maxName {
					t.Fatalf("%q: a name of %d bytes", value, len(name))
				}
			}
		}
	})
}
