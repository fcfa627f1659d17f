package plugins

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A tool that NVTX_INJECTION64_PATH names gets a range of the domain NCCL for each public call, with its bytes; nesting is right on every
// thread. With NCCL_NVTX_DISABLE, or where the file is no tool, the program runs as without.
func TestNVTX(t *testing.T) {
	tool := build(t, "nvtx.so", "tests/plugins/testdata/nvtx.c", "-pthread")
	run := func(name string, env ...string) []string {
		out := filepath.Join(t.TempDir(), name)
		program.Check(t, spec("work", "threads", 2, append(env, "GCCL_TEST_NVTX="+out)...))
		text, err := os.ReadFile(out)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	lines := run("on", "NVTX_INJECTION64_PATH="+tool)
	if len(lines) == 0 || lines[0] != "domain NCCL" {
		t.Fatalf("the tool was told %q", lines)
	}
	begun, ended, bytes := map[string]int{}, 0, 0
	for _, l := range lines[1:] {
		f := strings.Fields(l)
		switch {
		case strings.Contains(l, "wrong") || len(f) < 2 || strings.HasPrefix(f[0], "-"):
			t.Errorf("the tool says %q", l)
		case f[1] == "end":
			ended++
		default:
			begun[f[1]]++
			if len(f) == 3 && f[1] == "ncclSend" && f[2] != "0" {
				bytes++
			}
		}
	}
	all := 0
	for name, n := range begun {
		if !strings.HasPrefix(name, "nccl") {
			t.Errorf("%d ranges are called %q", n, name)
		}
		all += n
	}
	if all != ended {
		t.Errorf("%d ranges began and %d ended", all, ended)
	}
	for _, name := range []string{"ncclAllReduce", "ncclSend", "ncclRecv", "ncclBroadcast", "ncclGroupStart", "ncclGroupEnd", "ncclSignal", "ncclWaitSignal", "ncclCommDestroy"} {
		if begun[name] == 0 {
			t.Errorf("no range of %s; there are %v", name, begun)
		}
	}
	if bytes == 0 {
		t.Error("no message has its bytes")
	}
	if lines := run("off", "NVTX_INJECTION64_PATH="+tool, "NCCL_NVTX_DISABLE=1"); lines != nil {
		t.Errorf("with NCCL_NVTX_DISABLE the tool was told %q", lines)
	}
	if lines := run("missing", "NVTX_INJECTION64_PATH="+tool+".not"); lines != nil {
		t.Errorf("without a tool: %q", lines)
	}
}
