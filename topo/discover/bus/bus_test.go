package bus

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestDevices(t *testing.T) {
	root := t.TempDir()
	for bus, modalias := range map[string]string{
		"0000:00:02.0": "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00",
		"0000:00:03.0": "pci:v00001AF4d00001041sv00001AF4sd00001041bc02sc00i00",
	} {
		dir := filepath.Join(root, "sys/devices/pci0000:00", bus)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "modalias"), []byte(modalias+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		links := filepath.Join(root, "sys/bus/pci/devices")
		if err := os.MkdirAll(links, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../../../devices/pci0000:00/"+bus, filepath.Join(links, bus)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Devices(root)
	if want := []string{"0000:00:02.0", "0000:00:03.0"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

// A machine that shows nothing has no devices; that is no error.
func TestNothing(t *testing.T) {
	if got, err := Devices(t.TempDir()); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

// A file that is no modalias makes the library give up the whole list.
func TestRubbish(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "sys/bus/pci/devices/0000:00:01.0")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "modalias"), []byte("pci:"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Devices(root); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}
