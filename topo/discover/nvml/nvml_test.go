package nvml

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	nv "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// libFlag makes this test binary open a library and print what it says; a driver's library is opened once a process.
var libFlag = flag.String("library", "", "open this library, print, exit")

func TestMain(m *testing.M) {
	flag.Parse()
	if *libFlag == "" {
		os.Exit(m.Run())
	}
	l, err := open(*libFlag)
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(0)
	}
	gpus, err := Read(l)
	fmt.Printf("%v %+v\n", err, gpus)
	_, ret := l.SystemGetDriverVersion()
	fmt.Println(int(ret), ret.Error())
}

// child runs this binary with a library, with lazy and with immediate binding.
func child(t *testing.T, library string, check func(t *testing.T, out string)) {
	t.Helper()
	for _, bind := range []string{"", "1"} {
		t.Run("LD_BIND_NOW="+bind, func(t *testing.T) {
			// A binary of another architecture needs an emulator for its children too.
			words := append(strings.Fields(os.Getenv("GCCL_TEST_WRAP")), os.Args[0], "-library", library)
			cmd := exec.Command(words[0], words[1:]...)
			cmd.Env = append(os.Environ(), "LD_BIND_NOW="+bind)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			check(t, string(out))
		})
	}
}

func TestNoDriver(t *testing.T) {
	child(t, "libno-such-driver.so.1", func(t *testing.T, out string) {
		if !strings.HasPrefix(out, "error: no driver: libno-such-driver.so.1: cannot open") {
			t.Errorf("output %q", out)
		}
	})
}

// The calls arrive, and what an old driver lacks is an error code instead of the end of the process.
func TestOldLibrary(t *testing.T) {
	lib := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	cc := "gcc"
	if os.Getenv("GCCL_TEST_WRAP") != "" && runtime.GOARCH == "arm64" {
		cc = "aarch64-linux-gnu-gcc"
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", lib, "testdata/libnvidia-ml.c").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cc, err, out)
	}
	child(t, lib, func(t *testing.T, out string) {
		if !strings.Contains(out, "<nil> [{Index:0 UUID:GPU-17 Name: BusID: SM:90 MIG:<nil> Links:[] C2C:[] P2P:map[] Fabric:<nil>}]") ||
			!strings.Contains(out, "13 text of the driver") {
			t.Errorf("output %q", out)
		}
	})
}

// A library that is no driver's at all: no error texts either.
func TestOtherLibrary(t *testing.T) {
	child(t, "libdl.so.2", func(t *testing.T, out string) {
		if out != "error: the driver refuses: nvmlInit: the driver's library has no error texts\n" {
			t.Errorf("output %q", out)
		}
	})
}

// Before a library is open every call is an error.
func TestUnbound(t *testing.T) {
	if _, ret := nv.New().DeviceGetCount(); ret != nv.ERROR_FUNCTION_NOT_FOUND {
		t.Errorf("gave %d", ret)
	}
}
