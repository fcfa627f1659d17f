package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/topo/discover"
	"github.com/gccl/gccl/topo/discover/nvml"
)

// machine is what checks look at: files below a root, and the answers of the system that are in no file. Tests put recordings in its place.
type machine struct {
	root string // "/" or the folder of a recording
	env  map[string]string
	pid  int // whose loaded libraries are looked at; 0: nobody's

	statfs    func(path string) (total, free uint64, err error)
	affinity  int                            // CPUs that this process may use
	gpus      func() ([]discover.GPU, error) // asks NVML
	systemHas map[string]error               // by system call: why it cannot be used, nil if it can
	settings  param.Env
}

// thisMachine is the one that the program runs on.
func thisMachine(pid int) *machine {
	m := &machine{root: "/", env: map[string]string{}, pid: pid, affinity: runtime.NumCPU(), gpus: nvml.GPUs,
		systemHas: probes(), settings: param.Process()}
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		m.env[name] = value
	}
	m.statfs = func(path string) (uint64, uint64, error) {
		var st unix.Statfs_t
		if err := unix.Statfs(path, &st); err != nil {
			return 0, 0, err
		}
		return st.Blocks * uint64(st.Bsize), st.Bavail * uint64(st.Bsize), nil
	}
	return m
}

// probes tries the system calls that the library needs or profits from.
func probes() map[string]error {
	out := map[string]error{}
	fd, err := unix.MemfdCreate("gccl-doctor", unix.MFD_CLOEXEC)
	if err == nil {
		if err = unix.Ftruncate(fd, 1<<20); err == nil {
			_, err = unix.Pwrite(fd, make([]byte, 4096), 0)
		}
		_ = unix.Close(fd)
	}
	out["memfd_create"] = err
	if fd, err = unix.PidfdOpen(os.Getpid(), 0); err == nil {
		_ = unix.Close(fd)
	}
	out["pidfd_open"] = err
	const register = 1 << 2 // MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED of linux/membarrier.h
	_, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, register, 0, 0)
	out["membarrier"] = nil
	if errno != 0 {
		out["membarrier"] = errno
	}
	return out
}

func (m *machine) path(elem ...string) string {
	return filepath.Join(append([]string{m.root}, elem...)...)
}

// maxFile bounds what is read of one file.
const maxFile = 4 << 20

// text reads a file without its last white space; empty if it cannot be read.
func (m *machine) text(elem ...string) string {
	f, err := os.Open(m.path(elem...))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, maxFile)) // what came before an error is used
	return strings.TrimSpace(string(b))
}

func (m *machine) number(elem ...string) (int64, bool) {
	n, err := strconv.ParseInt(m.text(elem...), 0, 64)
	return n, err == nil
}

// exists also finds what may not be read.
func (m *machine) exists(elem ...string) bool {
	_, err := os.Lstat(m.path(elem...))
	return err == nil
}

// names lists a folder by name.
func (m *machine) names(elem ...string) []string {
	list, _ := os.ReadDir(m.path(elem...)) // none if it cannot be read
	out := make([]string, 0, len(list))
	for _, e := range list {
		out = append(out, e.Name())
	}
	sort.Strings(out)
	return out
}

// glob gives paths below the root, as the machine has them.
func (m *machine) glob(pattern string) []string {
	list, _ := filepath.Glob(m.path(pattern)) // patterns of this program are well formed
	for i, p := range list {
		list[i] = "/" + strings.TrimPrefix(strings.TrimPrefix(p, m.root), "/")
	}
	return list
}

// real follows links; the path itself if there is nothing.
func (m *machine) real(path string) string {
	p, err := filepath.EvalSymlinks(m.path(path))
	if err != nil {
		return path
	}
	base, err := filepath.EvalSymlinks(m.root)
	if err != nil {
		return path
	}
	return "/" + strings.TrimPrefix(strings.TrimPrefix(p, base), "/")
}

// pciDevices lists the bus ids of devices of a base class (PCI Code and ID Assignment Specification) and, if not empty, a vendor.
func (m *machine) pciDevices(class, vendor string) []string {
	var out []string
	for _, id := range m.names("sys/bus/pci/devices") {
		if strings.HasPrefix(m.text("sys/bus/pci/devices", id, "class"), "0x"+class) &&
			(vendor == "" || m.text("sys/bus/pci/devices", id, "vendor") == vendor) {
			out = append(out, id)
		}
	}
	return out
}

const vendorNVIDIA = "0x10de"

func (m *machine) gpusOnBus() []string { return m.pciDevices("03", vendorNVIDIA) }

func (m *machine) rdmaDevices() []string { return m.names("sys/class/infiniband") }

// raw reads a file as it is; empty if it cannot be read.
func (m *machine) raw(elem ...string) string {
	b, err := os.ReadFile(m.path(elem...))
	if err != nil {
		return ""
	}
	return string(b)
}
