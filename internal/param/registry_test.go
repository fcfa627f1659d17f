package param

import (
	"encoding/binary"
	"strings"
	"testing"
)

func TestParams(t *testing.T) {
	s, _ := load(t, vars("NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=/x"))
	names := map[string]bool{}
	for _, p := range s.Params() {
		names[p.Name] = true
		if !p.Published {
			t.Errorf("%s is private", p.Name)
		}
	}
	for _, n := range []string{"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE", "NCCL_DEBUG_TIMESTAMP_FORMAT",
		"NCCL_DEBUG_TIMESTAMP_LEVELS", "NCCL_SET_THREAD_NAME", "GCCL_DEVICE"} {
		if !names[n] {
			t.Errorf("%s is missing", n)
		}
	}
	if names["NCCL_NO_CACHE"] || names["NCCL_ALGO"] || names["NCCL_PROTO"] {
		t.Error("there are too many")
	}
	all, _ := load(t, vars("NCCL_PARAM_DUMP_ALL=1"))
	if len(all.Params()) != len(s.Params())+3 {
		t.Errorf("%d with private ones, %d without", len(all.Params()), len(s.Params()))
	}
}

func TestParam(t *testing.T) {
	s, _ := load(t, vars("NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=/x", "NCCL_DEBUG_SUBSYS=NET", "NCCL_DEBUG_TIMESTAMP_LEVELS=WARN,TRACE", "GCCL_SPIN_US=7", "GCCL_CHECK=1"))
	e := binary.NativeEndian
	for _, tt := range []struct {
		name, text string
		kind       CType
		raw        []byte
	}{
		{"NCCL_DEBUG", "INFO", CRaw, e.AppendUint32(nil, 3)},
		{"NCCL_DEBUG_SUBSYS", "NET", CUint64, e.AppendUint64(nil, 16)},
		{"NCCL_DEBUG_FILE", "/x", CString, []byte("/x\x00")},
		{"NCCL_DEBUG_TIMESTAMP_LEVELS", "WARN,TRACE", CUint32, e.AppendUint32(nil, 1<<2|1<<5)},
		{"NCCL_NO_CACHE", "", CString, []byte{0}},
		{"NCCL_PARAM_DUMP_ALL", "0", CBool, []byte{0}},
		{"GCCL_SPIN_US", "7", CInt64, e.AppendUint64(nil, 7)},
		{"GCCL_CHECK", "1", CBool, []byte{1}},
		{"GCCL_DEVICE", "auto", CString, []byte("auto\x00")},
	} {
		p, ok := s.Param(tt.name)
		if !ok || p.Text != tt.text || p.Type != tt.kind || string(p.Raw) != string(tt.raw) {
			t.Errorf("%s: %v %+v", tt.name, ok, p)
		}
		if !strings.HasPrefix(p.Dump, tt.name+" (") || !strings.Contains(p.Dump, "accepted: ") {
			t.Errorf("%s: dump %q", tt.name, p.Dump)
		}
	}
	if p, _ := Defaults().Param("NCCL_DEBUG"); string(p.Raw) != "\x00\x00\x00\x00" {
		t.Errorf("default level %v", p.Raw)
	}
	for _, n := range []string{"", "NCCL_ALGO", "NCCL_MAX_NCHANNELS", "nccl_debug", "GCCL_NOTHING"} {
		if _, ok := s.Param(n); ok {
			t.Errorf("%q was found", n)
		}
	}
}
