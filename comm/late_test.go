package comm

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

func FuzzDecodeLate(f *testing.F) {
	f.Add(lateMessage{number: 1, seq: 2}.encode())
	f.Add(lateMessage{answer: true, number: 3, seq: 4, finished: 5, joined: true}.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, ok := decodeLate(b)
		if ok && string(m.encode()) != string(b) {
			t.Errorf("%x is read as %+v", b, m)
		}
		if !ok && len(b) == lateBytes && b[0] <= 1 && b[lateBytes-1] <= 1 {
			t.Errorf("%x is refused", b)
		}
	})
}

// The state of a process is that of its own, whatever its name.
func TestProcessState(t *testing.T) {
	cmd := exec.Command("sh", "-c", `cp "$(command -v sleep)" "$0/a) Z 1" && exec "$0/a) Z 1" 100`, t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	await := func(want string) {
		t.Helper()
		got := ""
		for range 1000 {
			if got = processState(pid); got == want {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("got %s, want %s", got, want)
	}
	for range 1000 { // until it has the name
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(name) == "a) Z 1\n" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	await("alive")
	_ = cmd.Process.Signal(syscall.SIGSTOP)
	await("stopped")
	_ = cmd.Process.Kill()
	await("ended") // not waited for yet
	_ = cmd.Wait()
	await("ended")
	if got := processState(0); got != "unknown" {
		t.Errorf("of another namespace: %s", got)
	}
}
