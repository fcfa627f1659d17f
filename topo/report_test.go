package topo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// The JSON of a report has the fields and the form of shared/topo/computed-2.30.7.json, and where the search takes NCCL's steps
// the same content. Not in it: tuning and picks, which algo/tune owns.
func TestReportIsTheOraclesJSON(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(needShared(t), "computed-2.30.7.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, name := range sortedKeys(all) {
		for key, v := range all[name] {
			want, ok := v.(map[string]any)
			if !ok || want["graphs"] == nil || name == "a100-pcie-2gpu-nvbridge-asym" { // NCCL turns its two directions round
				continue
			}
			nodes := int(key[0] - '0')
			if differsAnywhere(name, nodes) {
				continue
			}
			s, o, err := loadSystem(t, name, nodes)
			if err != nil {
				t.Fatal(err)
			}
			o.Strict = true
			d, err := Search(s, o)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(asJSON(t, d.Report())), &got); err != nil {
				t.Fatal(err)
			}
			delete(want, "tuning")
			delete(want, "allreduce_pick")
			for _, field := range sortedKeys(want) {
				if !reflect.DeepEqual(got[field], want[field]) {
					t.Errorf("%s %s %s:\n  %.200s\n  %.200s", name, key, field, asJSON(t, got[field]), asJSON(t, want[field]))
				}
			}
			for _, field := range sortedKeys(got) {
				if _, there := want[field]; !there {
					t.Errorf("%s %s: field %s is not NCCL's", name, key, field)
				}
			}
			compared++
		}
	}
	if compared < 50 {
		t.Errorf("%d reports compared", compared)
	}
	t.Logf("%d reports are the same JSON", compared)
}
