package status

import (
	"encoding/json"
	"fmt"
	stdnet "net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func serve(t *testing.T, dir string, tell func() Process) *Server {
	t.Helper()
	s, err := Serve(dir, tell)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAnswer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sockets")
	if list, errs := List(dir, time.Second); len(list) != 0 || len(errs) != 0 {
		t.Errorf("a folder that does not exist: %v, %v", list, errs)
	}
	want := Process{PID: os.Getpid(), Comms: []Comm{{ID: "x", Rank: 1, Ranks: 2, Peers: []Peer{{Rank: 0, Process: "alive"}}}}}
	s := serve(t, dir, func() Process { return want })
	for range 3 {
		list, errs := List(dir, 5*time.Second)
		got, _ := json.Marshal(list)
		if wanted, _ := json.Marshal([]Process{want}); string(got) != string(wanted) || len(errs) != 0 {
			t.Errorf("got %s, %v", got, errs)
		}
	}
	for path, mode := range map[string]os.FileMode{dir: os.ModeDir | 0o700, s.Path(): os.ModeSocket | 0o600} {
		if st, err := os.Lstat(path); err != nil || st.Mode() != mode {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	s.Close()
	if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestFolderOfOthers(t *testing.T) {
	dir := t.TempDir()
	open, link := filepath.Join(dir, "open"), filepath.Join(dir, "link")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "good"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("good", link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{open: "others may enter it", link: "not a folder"} {
		if _, err := Serve(path, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is served: %v", path, err)
		}
		if _, errs := List(path, time.Second); len(errs) != 1 || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%s is read: %v", path, errs)
		}
	}
}

// A client of another user, which cannot get past the folder, would get nothing even if it could.
func TestOtherUser(t *testing.T) {
	if os.Getenv("GCCL_STATUS_SOCKET") != "" { // the child below
		c, err := stdnet.Dial("unix", os.Getenv("GCCL_STATUS_SOCKET"))
		if err != nil {
			fmt.Println("refused")
			return
		}
		b := make([]byte, 1)
		n, _ := c.Read(b)
		fmt.Printf("read %d\n", n)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	base, err := os.MkdirTemp("", "gccl-status-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	dir := filepath.Join(base, "sockets")
	s := serve(t, dir, func() Process { return Process{PID: 1} })
	defer s.Close()
	exe := filepath.Join(base, "test") // the test's own is in a folder that others may not enter
	text, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(exe, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	ask := func() string {
		cmd := exec.Command(exe, "-test.run=^TestOtherUser$", "-test.v")
		cmd.Env = append(os.Environ(), "GCCL_STATUS_SOCKET="+s.Path())
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return string(out)
	}
	_ = os.Chmod(base, 0o755)
	if got := ask(); !strings.Contains(got, "refused") {
		t.Errorf("with the folder closed: %s", got)
	}
	_ = os.Chmod(dir, 0o755)
	_ = os.Chmod(s.Path(), 0o666)
	if got := ask(); !strings.Contains(got, "read 0") {
		t.Errorf("with the folder open: %s", got)
	}
}

// TestLeftBehind: sockets of processes that were killed, also where a forked child has kept the descriptor.
func TestLeftBehind(t *testing.T) {
	if dir := os.Getenv("GCCL_STATUS_DIR"); dir != "" { // the process that is killed
		if _, err := Serve(dir, func() Process { return Process{PID: os.Getpid()} }); err != nil {
			t.Fatal(err)
		}
		fmt.Println("serving")
		select {}
	}
	if path := os.Getenv("GCCL_STATUS_PASS"); path != "" { // the one that hands its listening socket over
		l, err := stdnet.ListenUnix("unix", &stdnet.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.File()
		if err == nil {
			err = unix.Sendmsg(3, []byte("x"), unix.UnixRights(int(f.Fd())), nil, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		os.Exit(0) // without removing the file
	}
	dir := filepath.Join(t.TempDir(), "sockets")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLeftBehind$")
	cmd.Env = append(os.Environ(), "GCCL_STATUS_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if list, errs := List(dir, 5*time.Second); len(list) != 1 || list[0].PID != cmd.Process.Pid || len(errs) != 0 {
		t.Errorf("while it lives: %v, %v", list, errs)
	}
	path := sockets(dir)[0]
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("a killed process leaves its socket: %v", err)
	}
	s := serve(t, dir, func() Process { return Process{} })
	if got := sockets(dir); len(got) != 1 || got[0] != s.Path() {
		t.Errorf("the next process does not sweep: %v", got)
	}
	s.Close()

	// A listening socket whose process has ended: made by a child that hands the descriptor to this process and ends.
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	inherited := filepath.Join(dir, "1-0.sock")
	child := exec.Command(os.Args[0], "-test.run=^TestLeftBehind$")
	child.Env = append(os.Environ(), "GCCL_STATUS_PASS="+inherited)
	child.ExtraFiles = []*os.File{os.NewFile(uintptr(dup(t, pair[1])), "pair")}
	if text, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	oob := make([]byte, 64)
	if _, n, _, _, err := unix.Recvmsg(pair[0], make([]byte, 1), oob, 0); err != nil || n == 0 {
		t.Fatalf("no descriptor: %v", err)
	}
	if list, errs := List(dir, time.Second); len(list) != 0 || len(errs) != 0 {
		t.Errorf("an inherited socket: %v, %v", list, errs)
	}
	if _, err := os.Lstat(inherited); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func dup(t *testing.T, fd int) int {
	t.Helper()
	n, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A process that does not answer is named, and the others are asked.
func TestSilentProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sockets")
	s := serve(t, dir, func() Process { return Process{PID: 7} })
	defer s.Close()
	l, err := stdnet.Listen("unix", filepath.Join(dir, "5-0.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	list, errs := List(dir, 300*time.Millisecond)
	if len(list) != 1 || list[0].PID != 7 || len(errs) != 1 || !strings.Contains(errs[0].Error(), "process 5: no answer") {
		t.Errorf("%v, %v", list, errs)
	}
}
