package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/version"
)

func run(t *testing.T, env param.MapEnv, args ...string) (out, problems string, err error) {
	t.Helper()
	var o, p bytes.Buffer
	c := command(env, &o, &p)
	c.SetArgs(args)
	err = c.Execute()
	return o.String(), p.String(), err
}

func TestFacts(t *testing.T) {
	out, _, err := run(t, param.MapEnv{})
	if err != nil || !strings.Contains(out, version.Library) || !strings.Contains(out, "2.30.7 (23007)") {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = run(t, param.MapEnv{}, "--json")
	var facts []fact
	if err != nil || json.Unmarshal([]byte(out), &facts) != nil || len(facts) < 5 {
		t.Errorf("%v\n%s", err, out)
	}
}

var odd = param.MapEnv{
	Vars:  map[string]string{"NCCL_DEBG": "INFO", "GCCL_STAGE_BYTES": "8MB", "NCCL_NTHREADS": "many"},
	Files: map[string]string{"/etc/nccl.conf": "NCCL_SHM_DISABLE=1\n"},
}

func TestEnvListsEverySettingWithOrigin(t *testing.T) {
	out, problems, err := run(t, odd, "--env")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != len(param.All()) {
		t.Errorf("%d lines for %d settings", len(lines), len(param.All()))
	}
	words := map[string]string{}
	for _, l := range lines {
		f := strings.Fields(l)
		words[f[0]] = strings.Join(f[1:], " ")
	}
	for name, want := range map[string]string{
		"GCCL_STAGE_BYTES": "8388608 environment",
		"NCCL_SHM_DISABLE": "1 file /etc/nccl.conf",
		"NCCL_NTHREADS":    "512 default no effect in host mode",
		"NCCL_DEBUG":       "unset default",
	} {
		if words[name] != want {
			t.Errorf("%s: got %q, want %q", name, words[name], want)
		}
	}
	for _, w := range []string{"did you mean NCCL_DEBUG?", `NCCL_NTHREADS has the unreadable value "many"`} {
		if !strings.Contains(problems, w) {
			t.Errorf("problems lack %q:\n%s", w, problems)
		}
	}
}

func TestSetAsJSON(t *testing.T) {
	out, _, err := run(t, odd, "--set", "--json")
	var list []settingInfo
	if err != nil || json.Unmarshal([]byte(out), &list) != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(list) != 2 || list[0].Name != "GCCL_STAGE_BYTES" || list[0].Value != "8388608" || list[1].Origin != "file /etc/nccl.conf" {
		t.Errorf("got %+v", list)
	}
	out, _, _ = run(t, param.MapEnv{}, "--set", "--json")
	if strings.TrimSpace(out) != "[]" {
		t.Errorf("nothing set prints %q", out)
	}
}

func TestBadValueFails(t *testing.T) {
	env := param.MapEnv{Vars: map[string]string{"GCCL_DEVICE": "gpu"}}
	out, _, err := run(t, env, "--env")
	if err == nil || !strings.Contains(err.Error(), "GCCL_DEVICE") || !strings.Contains(out, "NCCL_DEBUG") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, _, err := run(t, env, "--nonsense"); err == nil {
		t.Error("an unknown option was taken")
	}
}
