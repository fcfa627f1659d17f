package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Lines of two files in one picture: rows by their fields, another field for the time, and what cannot be drawn.
func TestRecorded(t *testing.T) {
	dir := t.TempDir()
	lines, object, svg := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.json"), filepath.Join(dir, "out.svg")
	for file, text := range map[string]string{
		lines:  `{"kind":"run"}` + "\n" + `{"kind":"row","bytes":8,"p50_us":2,"ranks":2}` + "\n" + `{"kind":"row","bytes":64,"p50_us":4,"ranks":3}` + "\n",
		object: `{"machine":"m","rows":[{"bytes":8,"ours_us":1,"peer_us":16,"peer":"Open MPI"},{"bytes":64,"ours_us":1,"peer_us":32,"peer":"Open MPI"},{"bytes":64,"ours_us":9,"peer_us":99,"peer":"other"}]}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(specs ...string) error {
		args := []string{"--svg", svg, "--title", "a <title>"}
		for _, s := range specs {
			args = append(args, "--recorded", s)
		}
		c := command(os.Stdout, os.Stderr, nil)
		c.SetArgs(args)
		return c.Execute()
	}
	if err := run("two="+lines+";ranks=2", "ours="+object+";peer=Open MPI", "theirs="+object+";peer=Open MPI;time=peer_us"); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a &lt;title&gt;", "two: 8 B, 2.00 µs, 0.004 GB/s", "ours: 64 B, 1.00 µs", "theirs: 64 B, 32.00 µs", "time (µs)", "size over time (GB/s)"} {
		if !strings.Contains(string(picture), text) {
			t.Errorf("no %q in the picture", text)
		}
	}
	for _, text := range []string{"4.00 µs", "9.00 µs", "99.00 µs"} {
		if strings.Contains(string(picture), text) {
			t.Errorf("%q is in the picture", text)
		}
	}
	for spec, words := range map[string]string{"none": "NAME=FILE", "a=" + lines + ";x": "key=value", "a=" + lines + ";ranks=9": "no row", "a=" + dir + "/none": "no such file"} {
		if err := run(spec); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, not %q", spec, err, words)
		}
	}
	c := command(os.Stdout, os.Stderr, nil)
	c.SetArgs([]string{"--recorded", "a=" + lines})
	if err := c.Execute(); err == nil || !strings.Contains(err.Error(), "--svg") {
		t.Errorf("without --svg: %v", err)
	}
}
