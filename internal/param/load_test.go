package param

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
)

func vars(kv ...string) MapEnv {
	m := MapEnv{Vars: map[string]string{}, Files: map[string]string{}}
	for _, s := range kv {
		name, val, _ := strings.Cut(s, "=")
		m.Vars[name] = val
	}
	return m
}

func load(t *testing.T, env Env) (*Settings, []Warning) {
	t.Helper()
	s, warns, err := LoadFrom(env)
	if err != nil {
		t.Fatal(err)
	}
	return s, warns
}

func TestDefaults(t *testing.T) {
	s, warns := load(t, vars())
	if len(warns) != 0 {
		t.Errorf("warnings: %v", warns)
	}
	if got := s.Duration(GCCLInitTimeout); got != 30*time.Minute {
		t.Errorf("init timeout %v", got)
	}
	if s.Str(GCCLDevice) != "auto" || !s.IsAuto(GCCLDevice) || s.Bool(GCCLCheck) || s.Bool(GCCLDeterministic) {
		t.Error("our defaults are off")
	}
	if s.Size(GCCLLsaStride) != 4<<30 || s.Int(GCCLStageBytes) != Auto || s.IntOr(GCCLStageBytes, 7) != 7 {
		t.Error("sizes are off")
	}
	if _, _, ok := s.Range(GCCLPortRange); ok {
		t.Error("there is a port range")
	}
	if !reflect.DeepEqual(s, Defaults()) || (*Settings)(nil).Size(GCCLLsaStride) != 4<<30 {
		t.Error("nil settings are not the defaults")
	}
}

func TestValues(t *testing.T) {
	s, warns := load(t, vars("GCCL_INIT_TIMEOUT=90", "GCCL_DEVICE=HOST", "GCCL_STAGE_BYTES=4MB", "GCCL_PORT_RANGE=20000-20100",
		"GCCL_SPIN_US=0x10", "NCCL_DEBUG_SUBSYS=a, b", "NCCL_COMM_BLOCKING=0", "NCCL_MAX_NCHANNELS=100", "NCCL_IB_FIFO_TC=-1",
		"NCCL_DEBUG=info", "GCCL_EAGER_BYTES=auto", "GCCL_YIELD_US="))
	if s.Duration(GCCLInitTimeout) != 90*time.Second || s.Str(GCCLDevice) != "host" || s.Size(GCCLStageBytes) != 4<<20 {
		t.Error("our values are off")
	}
	if lo, hi, ok := s.Range(GCCLPortRange); lo != 20000 || hi != 20100 || !ok {
		t.Errorf("range %d %d %v", lo, hi, ok)
	}
	if s.Int(GCCLSpinUs) != 16 || !reflect.DeepEqual(s.List(NCCLDebugSubsys), []string{"a", "b"}) {
		t.Error("numbers and lists are off")
	}
	if s.IsAuto(NCCLCommBlocking) || s.Bool(NCCLCommBlocking) || s.Int(NCCLMaxCtas) != 64 || s.Str(NCCLDebug) != "INFO" {
		t.Error("values of NCCL are off")
	}
	if !s.IsAuto(GCCLEagerBytes) || s.IsSet(GCCLYieldUs) {
		t.Error("auto and empty are off")
	}
	var minor []string
	for _, w := range warns {
		minor = append(minor, w.Text)
		if !w.Minor {
			t.Errorf("not minor: %v", w)
		}
	}
	want := []string{
		"NCCL_IB_FIFO_TC (environment) has no effect in host mode",
		"NCCL_MAX_NCHANNELS (environment) has no effect in host mode",
		"NCCL_MAX_NCHANNELS (environment) is an old name of NCCL_MAX_CTAS",
	}
	if !reflect.DeepEqual(minor, want) {
		t.Errorf("got  %q\nwant %q", minor, want)
	}
}

func TestBadValueOfOursIsAnError(t *testing.T) {
	for _, tt := range []struct{ set, accepted string }{
		{"GCCL_INIT_TIMEOUT=soon", "30m, 10s"},
		{"GCCL_INIT_TIMEOUT=0", "at least 1ms"},
		{"GCCL_DEVICE=gpu", "auto, host, cuda"},
		{"GCCL_DETERMINISTIC=yes", "0 or 1"},
		{"GCCL_STAGE_BYTES=1", "64KiB to 1TiB"},
		{"GCCL_STAGE_BYTES=18446744073709551615", "64KiB to 1TiB"},
		{"GCCL_SPIN_US=-1", "0 to 1000000"},
		{"GCCL_PORT_RANGE=30-20", "from 1 to 65535"},
		{"GCCL_PORT_RANGE=0-70000", "from 1 to 65535"},
		{"GCCL_PORT_RANGE=a-b", "from 1 to 65535"},
		{"GCCL_SIMD=sse", "auto, c, avx2, avx512, neon"},
	} {
		s, _, err := LoadFrom(vars(tt.set))
		name, val, _ := strings.Cut(tt.set, "=")
		if !errors.Is(err, xerr.InvalidUsage) {
			t.Errorf("%s: %v", tt.set, err)
			continue
		}
		for _, part := range []string{name, `"` + val + `"`, "environment", tt.accepted} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q is not in %q", tt.set, part, err)
			}
		}
		if id, _ := ByName(name); s.IsSet(id) || s.Show(id) != Defaults().Show(id) {
			t.Errorf("%s: the value is not the default", tt.set)
		}
	}
	_, _, err := LoadFrom(vars("GCCL_SIMD=sse", "GCCL_DEVICE=gpu"))
	if err == nil || !strings.Contains(err.Error(), "GCCL_SIMD") || !strings.Contains(err.Error(), "GCCL_DEVICE") {
		t.Errorf("not all bad values are named: %v", err)
	}
}

func TestOddValuesOfNCCL(t *testing.T) {
	for _, tt := range []struct{ set, warning, show string }{
		{"NCCL_BUFFSIZE=4MB", "", "4194304"},
		{"NCCL_BUFFSIZE=0x800000", "", "8388608"},
		{"NCCL_BUFFSIZE=4XB", `NCCL_BUFFSIZE has the unreadable value "4XB" (environment): the default holds, 4194304; accepted: bytes`, "4194304"},
		{"NCCL_P2P_DISABLE=yes", `NCCL_P2P_DISABLE has the unreadable value "yes" (environment): the default holds, 0; accepted: 0 or 1`, "0"},
		{"NCCL_P2P_DISABLE= 1 ", "", "1"},
		{"NCCL_NTHREADS=256 128", `NCCL_NTHREADS has the unreadable value "256 128"`, "512"},
		{"NCCL_NTHREADS=18446744073709551615", "NCCL_NTHREADS has the unreadable value", "512"},
		{"NCCL_NTHREADS=-1", "64 to 512", "512"},
		{"NCCL_CGA_CLUSTER_SIZE=12", "", "8"},
		{"NCCL_MIN_CTAS=0", "NCCL_MIN_CTAS", "auto"},
		{"NCCL_IB_HCA==", "", "="},
		{"NCCL_DEBUG=LOUD", "NONE, VERSION, WARN, INFO, ABORT, TRACE", "unset"},
		{"NCCL_SOCKET_FAMILY=inet", "AF_INET, AF_INET6", "unset"},
		{"NCCL_SOCKET_FAMILY=AF_INET6", "", "AF_INET6"},
	} {
		s, all := load(t, vars(tt.set))
		var warns []Warning
		for _, w := range all {
			if !w.Minor {
				warns = append(warns, w)
			}
		}
		name, _, _ := strings.Cut(tt.set, "=")
		id, _ := ByName(name)
		if got := s.Show(id); got != tt.show {
			t.Errorf("%s: value %q, want %q", tt.set, got, tt.show)
		}
		if (tt.warning != "") != (len(warns) == 1) || len(warns) == 1 && !strings.Contains(warns[0].Text, tt.warning) {
			t.Errorf("%s: warnings %v", tt.set, warns)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	_, warns := load(t, vars("NCCL_SOCKET_IFNAMES=x", "NCCL_DEBG=INFO", "GCCL_WHATEVER_ELSE=1", "NCCL_VERSION=2.30", "NCCL_TESTS_DEVICE=0",
		"NCCL_ASYNC_ERROR_HANDLING=1", "NCCL_SOCKET_RETRY_CNT=3", "PATH=/bin"))
	var got []string
	for _, w := range warns {
		got = append(got, w.Text)
	}
	want := []string{
		"GCCL_WHATEVER_ELSE (environment) is not a known setting and is ignored",
		"NCCL_DEBG (environment) is not a known setting and is ignored; did you mean NCCL_DEBUG?",
		"NCCL_SOCKET_IFNAMES (environment) is not a known setting and is ignored; did you mean NCCL_SOCKET_IFNAME?",
		"NCCL_SOCKET_RETRY_CNT (environment) is a setting of NCCL that does nothing here",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	var levels []string
	l := xlog.New(xlog.Config{Level: xlog.Info, LevelSet: true, Sink: func(r xlog.Record) { levels = append(levels, r.Level.String()) }})
	LogWarnings(l, warns)
	LogWarnings(l, warns)
	if got := strings.Join(levels, " "); got != "warn warn warn info" {
		t.Errorf("logged %q", got)
	}
}

const userFile = "# a comment\r\nNCCL_DEBUG=WARN\r\nNCCL_DEBUG=TRACE\n\nno equals sign\n #NCCL_ALGO=x\nGCCL_DEVICE=host\nNCCL_SOCKET_IFNAME==eth0\nNCCL_DBUG=1\nNCCL_HOSTID=  two words \n=x\n"

func TestConfFiles(t *testing.T) {
	env := vars("HOME=/home/u", "NCCL_SHM_DISABLE=1", "GCCL_CHECK=0")
	env.Files["/home/u/.nccl.conf"] = userFile + "NCCL_SHM_DISABLE=0\n"
	env.Files["/etc/nccl.conf"] = "NCCL_DEBUG=INFO\nNCCL_ALGO=Ring\nGCCL_CHECK=1\n"
	env.Files["/opt/my.conf"] = "NCCL_DEBUG=ABORT"
	s, warns := load(t, env)
	for id, want := range map[ID]struct{ show, origin string }{
		NCCLDebug:        {"WARN", "file /home/u/.nccl.conf"},
		NCCLSocketIfname: {"=eth0", "file /home/u/.nccl.conf"},
		NCCLHostid:       {"  two words ", "file /home/u/.nccl.conf"},
		GCCLDevice:       {"host", "file /home/u/.nccl.conf"},
		NCCLAlgo:         {"Ring", "file /etc/nccl.conf"},
		NCCLShmDisable:   {"1", "environment"},
		GCCLCheck:        {"0", "environment"},
		NCCLProto:        {"unset", "default"},
	} {
		if s.Show(id) != want.show || s.Origin(id).String() != want.origin {
			t.Errorf("%s, want %q (%s)", s.Describe(id), want.show, want.origin)
		}
	}
	if len(warns) != 1 || warns[0].Text != "NCCL_DBUG (file /home/u/.nccl.conf) is not a known setting and is ignored; did you mean NCCL_DEBUG?" {
		t.Errorf("warnings: %v", warns)
	}

	env.Vars["NCCL_CONF_FILE"] = "/opt/my.conf"
	s, _ = load(t, env)
	if s.Str(NCCLDebug) != "ABORT" || s.IsSet(NCCLSocketIfname) || s.Str(NCCLAlgo) != "Ring" {
		t.Error("NCCL_CONF_FILE does not replace the user's file")
	}
	env.Vars["NCCL_CONF_FILE"] = ""
	if s, _ = load(t, env); s.Str(NCCLDebug) != "WARN" {
		t.Error("an empty NCCL_CONF_FILE counts")
	}
	env.Vars["NCCL_CONF_FILE"] = "/missing"
	s, warns = load(t, env)
	if s.Str(NCCLDebug) != "INFO" || len(warns) != 1 || !strings.Contains(warns[0].Text, "/missing: file does not exist") {
		t.Errorf("missing file: %s, warnings %v", s.Str(NCCLDebug), warns)
	}
	env.Vars["NCCL_CONF_FILE"] = "~/x"
	if _, warns = load(t, env); len(warns) != 1 || !strings.Contains(warns[0].Text, "~/x") {
		t.Errorf("tilde: warnings %v", warns)
	}
}

func TestBadValueInAFileNamesTheFile(t *testing.T) {
	env := vars()
	env.Files["/etc/nccl.conf"] = "GCCL_DEVICE=gpu\n"
	_, _, err := LoadFrom(env)
	if err == nil || !strings.Contains(err.Error(), "file /etc/nccl.conf") {
		t.Errorf("error is %v", err)
	}
}

func TestProcessSeesLaterChanges(t *testing.T) {
	t.Setenv("NCCL_CONF_FILE", os.DevNull) // keeps the user's file out; also not a regular file
	t.Setenv("GCCL_SPIN_US", "11")
	s, warns, err := Load()
	if err != nil || s.Int(GCCLSpinUs) != 11 {
		t.Fatalf("%d %v", s.Int(GCCLSpinUs), err)
	}
	found := false
	for _, w := range warns {
		found = found || strings.Contains(w.Text, "not a regular file")
	}
	if !found {
		t.Errorf("the device was read: %v", warns)
	}
	t.Setenv("GCCL_SPIN_US", "12")
	if s, _, _ = Load(); s.Int(GCCLSpinUs) != 12 {
		t.Errorf("still %d", s.Int(GCCLSpinUs))
	}
}

func TestProcessReadFile(t *testing.T) {
	dir := t.TempDir()
	pipe, big, good := filepath.Join(dir, "pipe"), filepath.Join(dir, "big"), filepath.Join(dir, "good")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int64{big: maxConfFile + 1, good: maxConfFile} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
	}
	for name, ok := range map[string]bool{pipe: false, dir: false, big: false, good: true, dir + "/none": false} {
		if _, err := Process().ReadFile(name); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAgree(t *testing.T) {
	a, _ := load(t, vars("GCCL_STAGE_BYTES=4MB", "NCCL_DEBUG=INFO"))
	b, _ := load(t, vars("GCCL_STAGE_BYTES=4194304", "GCCL_CHECK=1", "GCCL_SPIN_US=5"))
	c, _ := load(t, vars("GCCL_STAGE_BYTES=8MB"))
	if !reflect.DeepEqual(a.Agree(), b.Agree()) || a.AgreeHash() != b.AgreeHash() {
		t.Error("equal values written differently do not agree")
	}
	if a.AgreeHash() == c.AgreeHash() || a.Agree()["GCCL_STAGE_BYTES"] != "4194304" {
		t.Error("different values agree")
	}
	// The hash travels between ranks of different machines and builds.
	if got := HashValues(map[string]string{"B": "2", "A": "1"}); got != 0x71a7d01354270cc8 {
		t.Errorf("the hash changed: %#x", got)
	}
	if HashValues(map[string]string{"A": "1B"}) == HashValues(map[string]string{"A1": "B"}) {
		t.Error("name and value run together")
	}
}

func TestLogConfig(t *testing.T) {
	s, _ := load(t, vars("NCCL_DEBUG=abort", "NCCL_DEBUG_SUBSYS=^NET,NETT", "NCCL_DEBUG_FILE=/x/%h", "NCCL_DEBUG_TIMESTAMP_LEVELS=INFO,x"))
	c, warns := s.LogConfig()
	if c.Level != xlog.Debug || !c.LevelSet || c.Subsys != ^xlog.Net || c.File != "/x/%h" || c.TimeLevels != 1<<xlog.Info {
		t.Errorf("config %+v", c)
	}
	if len(warns) != 2 || !strings.Contains(warns[0].Text, "NCCL_DEBUG_SUBSYS has unknown words, which are ignored: NETT") {
		t.Errorf("warnings %v", warns)
	}
	if c, warns = Defaults().LogConfig(); c.LevelSet || len(warns) != 0 || c.TimeFormat != xlog.DefaultTimeFormat {
		t.Errorf("default config %+v %v", c, warns)
	}
}

func FuzzParseConf(f *testing.F) {
	f.Add(userFile)
	f.Add("A=\r\r\n=\n#=\nA=B=C")
	f.Fuzz(func(t *testing.T, data string) {
		seen := map[string]bool{}
		ParseConf(data, func(name, value string) {
			if name == "" || seen[name] || strings.ContainsAny(name+value, "\n\x00") || strings.HasPrefix(name, "#") || strings.HasSuffix(value, "\r") {
				t.Errorf("%q %q", name, value)
			}
			seen[name] = true
		})
	})
}
