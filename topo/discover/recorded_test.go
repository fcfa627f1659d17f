package discover

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unpack makes a file system from a recording: lines "path: content", "path -> target" (a symbolic link), and
// "pci path class vendor device node speed-in-GT/s width" for the files and the link of a PCI device below /sys/devices. "#" begins a comment.
func unpack(t *testing.T, recording string) string {
	t.Helper()
	dir := t.TempDir()
	for i, line := range strings.Split(pciFiles(t, recording), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		var err error
		if at, target, ok := strings.Cut(line, " -> "); ok {
			p := filepath.Join(dir, at)
			if err = os.MkdirAll(filepath.Dir(p), 0o755); err == nil {
				err = os.Symlink(target, p)
			}
		} else if at, content, ok := strings.Cut(line, ": "); ok {
			p := filepath.Join(dir, at)
			if err = os.MkdirAll(filepath.Dir(p), 0o755); err == nil {
				err = os.WriteFile(p, []byte(content+"\n"), 0o644)
			}
		} else {
			t.Fatalf("line %d of the recording is neither a file nor a link: %q", i+1, line)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func recording(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return unpack(t, string(text))
}

// pciFiles writes out the "pci" lines of a recording.
func pciFiles(t *testing.T, recording string) string {
	t.Helper()
	var b strings.Builder
	for _, line := range strings.Split(recording, "\n") {
		rest, ok := strings.CutPrefix(line, "pci ")
		if !ok {
			b.WriteString(line + "\n")
			continue
		}
		w := strings.Fields(rest)
		if len(w) != 7 {
			t.Fatalf("%d words in %q", len(w), line)
		}
		path, class, vendor, device := w[0], w[1], w[2], w[3]
		dir := "sys/devices/" + path
		fmt.Fprintf(&b, "sys/bus/pci/devices/%s -> ../../../devices/%s\n", filepath.Base(path), path)
		fmt.Fprintf(&b, "%s/class: 0x%s\n%s/vendor: 0x%s\n%s/device: 0x%s\n", dir, class, dir, vendor, dir, device)
		fmt.Fprintf(&b, "%s/subsystem_vendor: 0x%s\n%s/subsystem_device: 0x0001\n", dir, vendor, dir)
		fmt.Fprintf(&b, "%s/modalias: pci:v0000%sd0000%ssv0000%ssd00000001bc%ssc%si%s\n", dir, vendor, device, vendor, class[:2], class[2:4], class[4:])
		fmt.Fprintf(&b, "%s/numa_node: %s\n%s/max_link_speed: %s GT/s PCIe\n%s/max_link_width: %s\n", dir, w[4], dir, w[5], dir, w[6])
	}
	return b.String()
}
