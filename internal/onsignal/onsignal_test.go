package onsignal

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// The handler that was there before is called too, at every signal.
func TestCall(t *testing.T) {
	before := make(chan os.Signal, 8)
	signal.Notify(before, syscall.SIGUSR2)
	defer signal.Stop(before)
	ours := make(chan bool, 8)
	if ok, err := Call(syscall.SIGUSR2, func() { ours <- true }); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := Call(syscall.SIGUSR1, nil); ok || err != nil {
		t.Errorf("a second handler: %v, %v", ok, err)
	}
	for i := range 3 {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]func() bool{
			"ours":        func() bool { return <-ours },
			"the earlier": func() bool { return <-before == syscall.SIGUSR2 },
		} {
			done := make(chan bool, 1)
			go func() { done <- c() }()
			select {
			case <-done:
			case <-time.After(20 * time.Second):
				t.Fatalf("signal %d: %s has not come", i, name)
			}
		}
	}
	// A program that is started from here has the signal's default, as exec gives it.
	cmd := exec.Command("sh", "-c", "kill -USR2 $$; sleep 1")
	if err := cmd.Run(); err == nil {
		t.Error("the signal is caught after exec")
	}
}
