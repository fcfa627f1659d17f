package param

import (
	"strings"
	"testing"
)

// A source decides about known names; the environment keeps the others, and what no source is asked for.
func TestSource(t *testing.T) {
	t.Setenv("NCCL_ALGO", "tree")
	t.Setenv("NCCL_PROTO", "LL")
	t.Setenv("NCCL_NET_PLUGIN_REF_COUNT", "1") // a name that does nothing here
	var asked []string
	SetSource(func(name string) (string, bool) {
		asked = append(asked, name)
		return "ring", name == "NCCL_ALGO"
	})
	defer SetSource(nil)
	s, warnings, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if s.Str(NCCLAlgo) != "ring" || s.Origin(NCCLAlgo).String() != "env plugin" {
		t.Errorf("NCCL_ALGO is %s (%s)", s.Str(NCCLAlgo), s.Origin(NCCLAlgo))
	}
	if s.IsSet(NCCLProto) {
		t.Errorf("NCCL_PROTO is set to %s, which the source does not know", s.Str(NCCLProto))
	}
	said := false
	for _, w := range warnings {
		said = said || w.Name == "NCCL_NET_PLUGIN_REF_COUNT"
	}
	if !said {
		t.Error("a name without effect is not spoken of")
	}
	if all := " " + strings.Join(asked, " ") + " "; strings.Contains(all, " NCCL_ENV_PLUGIN ") || strings.Contains(all, " HOME ") || strings.Contains(all, " NCCL_CONF_FILE ") {
		t.Errorf("asked for %s", all)
	}
	if !SetSource(nil) || SetSource(nil) {
		t.Error("SetSource does not say whether there was a source")
	}
	if s, _, _ = Load(); s.Str(NCCLAlgo) != "tree" || s.Origin(NCCLAlgo).String() != "environment" {
		t.Errorf("without a source NCCL_ALGO is %s (%s)", s.Str(NCCLAlgo), s.Origin(NCCLAlgo))
	}
}
