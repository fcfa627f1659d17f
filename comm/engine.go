package comm

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/net/bootstrap"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/topo/discover"
	"github.com/gccl/gccl/topo/discover/nvml"
)

// APIVersion is the version code that programs see (nccl.h of 2.30.7). All ranks of a communicator must have the same.
const APIVersion = 23007

// Version is that of this library.
const Version = "0.1"

// ABIVersion is APIVersion as people write it.
func ABIVersion() string {
	return fmt.Sprintf("%d.%d.%d", APIVersion/10000, APIVersion/100%100, APIVersion%100)
}

// Resolve fills what a configuration leaves open, with the environment as it is now.
func (e *Engine) Resolve(c *Config, parent *Config) error {
	s, err := e.settings()
	if err != nil {
		return err
	}
	return c.Resolve(parent, s)
}

// Front is what the communicator needs from whoever runs its operations.
type Front struct {
	// Quiesce waits until the communicator has no operation in flight in this process, or timeout is over (0: for
	// ever). It gives Success, Timeout, or the latched error.
	Quiesce func(c control.Comm, timeout time.Duration) xerr.Code
	// Retire says that the structure is no longer used by the core. idle: nor by an operation; otherwise it must stay as it is.
	Retire func(c control.Comm, idle bool)
	// CUDA is the device of CUDA communicators; nil where the build has none.
	CUDA *Device
	// Trace is what the front offers for tracing.
	Trace control.Trace
	// AtExit makes the engine's AtExit run when the process ends in order.
	AtExit func()
	// SIMD names the sets of reduction kernels that this CPU runs; none: only "c".
	SIMD []string
}

// Device is what a device other than the host does when a communicator is made and ends.
type Device struct {
	// Section is how many bytes of each rank's area the device shares between ranks.
	Section func(nranks int) uint64
	// Hello is what all ranks must know of this rank's device.
	Hello func(c control.Comm) []byte
	// UUID finds in a hello which GPU the rank is on; nil if hellos do not say it.
	UUID func(hello []byte) ([16]byte, bool)
	// Meet is called with the hellos of all ranks, in order, when their areas are mapped.
	Meet func(c control.Comm, hellos [][]byte) error
	// Link is called when all ranks have met. It says whether kernels of all ranks that wait for each other are used, and why, the same on
	// all ranks; an error if this rank cannot, and then all call Unlink.
	Link   func(c control.Comm) (linked bool, why string, err error)
	Unlink func(c control.Comm)
	// OfferWindow describes this rank's part of a window for the others and keeps its memory; MapWindow maps the parts of all ranks
	// into the window; ShowWindow makes it known to kernels, when it has its slot, and HideWindow ends that; ReleaseWindow gives back what
	// MapWindow (if there is a window) and OfferWindow kept.
	OfferWindow   func(c control.Comm, buff uintptr, size uint64) ([]byte, error)
	MapWindow     func(c control.Comm, w control.Window, parts [][]byte) error
	ShowWindow    func(c control.Comm, w control.Window) error
	HideWindow    func(c control.Comm, w control.Window)
	ReleaseWindow func(c control.Comm, w control.Window, part []byte)
	// Look latches a failure if the rank waits for one that has left the communicator.
	Look func(c control.Comm)
	// NewMemory is zeroed memory that a window can lie in; FreeMemory gives it back, or leaves it to the windows that are in it.
	NewMemory  func(c control.Comm, bytes uint64) (uintptr, error)
	FreeMemory func(p uintptr)
	// Mover is the device's gccl_mover_ops.
	Mover uintptr
	// Progress is the last collective that has ended in this rank's streams, and the last that it has called. It asks the driver.
	Progress func(c control.Comm) (finished, called uint64)
	// Leave is called before the areas go, when nothing of the communicator is in flight. It says whether they may go: a replay of a
	// graph may still look at them after an abort.
	Leave func(c control.Comm) bool
}

// Engine is what the communicators of a process share. Use New once per process; tests may make several.
type Engine struct {
	front Front
	build string
	load  func() (*param.Settings, []param.Warning, error)
	log   *xlog.Logger

	mu    sync.Mutex
	svc   *bootstrap.Service
	teams map[string]*team // flat ranges by team
	watch watchdog
	ends  obituaries
	spare spares
	trace traceWriter
	live  living

	plugins plugins

	local     discover.Local // this process's view of the machine
	measured  measurements
	wrapNet   func(transport.Transport) transport.Transport // tests put faults before a network; nil otherwise
	decisions decisions
}

// Options of an engine.
type Options struct {
	Front Front
	Build string // identity of the library build; ranks of different builds refuse each other
	Load  func() (*param.Settings, []param.Warning, error)
	Log   *xlog.Logger
}

// NewEngine makes an engine. Nothing is opened before the first communicator or id.
func NewEngine(o Options) *Engine {
	if o.Load == nil {
		o.Load = LoadSettings
	}
	if o.Front.Quiesce == nil {
		o.Front.Quiesce = func(control.Comm, time.Duration) xerr.Code { return xerr.Success }
	}
	if o.Front.Retire == nil {
		o.Front.Retire = func(control.Comm, bool) {}
	}
	if o.Front.AtExit == nil {
		o.Front.AtExit = func() {}
	}
	if len(o.Front.SIMD) == 0 {
		o.Front.SIMD = []string{"c"}
	}
	if EnvPlugin() != "" {
		o.Log.Info(xlog.Env, "env plugin %s", EnvPlugin())
		o.Front.AtExit()
	}
	return &Engine{front: o.Front, build: o.Build, load: o.Load, log: o.Log, teams: map[string]*team{},
		local: discover.Local{Sources: discover.Sources{GPUs: nvml.GPUs}}}
}

// Log is the engine's logger; it may be nil, which logs nothing.
func (e *Engine) Log() *xlog.Logger {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.log
}

// settings reads the environment and says new warnings.
func (e *Engine) settings() (*param.Settings, error) {
	s, warnings, err := e.load()
	param.LogWarnings(e.Log(), warnings)
	return s, err
}

// service returns the bootstrap of this process, made with the settings in force at the first need.
func (e *Engine) service(s *param.Settings) (*bootstrap.Service, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.svc != nil {
		return e.svc, nil
	}
	o := bootstrap.Options{
		Timeout: s.Duration(param.GCCLInitTimeout),
		// Who made an id was listening before: refused connections mean that it has gone, as soon as one retry says so too.
		RefusedLimit: 3 * time.Second,
		Log: func(l bootstrap.Level, line string) {
			if l == bootstrap.Warn {
				e.Log().Warn(xlog.Bootstrap, "%s", line)
			} else {
				e.Log().Info(xlog.Bootstrap, "%s", line)
			}
		},
	}
	filter, err := s.InterfaceFilter(param.NCCLSocketIfname)
	if err != nil {
		return nil, err
	}
	if !filter.Empty() {
		o.IfFilter = filter.Match
		o.IfFilterText = "NCCL_SOCKET_IFNAME=" + s.Str(param.NCCLSocketIfname)
	}
	switch s.Str(param.NCCLSocketFamily) {
	case "AF_INET":
		o.Family = bootstrap.FamilyIPv4
	case "AF_INET6":
		o.Family = bootstrap.FamilyIPv6
	}
	if lo, hi, ok := s.Range(param.GCCLPortRange); ok {
		o.PortMin, o.PortMax = int(lo), int(hi)
	}
	svc, err := bootstrap.NewService(o)
	if err != nil {
		return nil, err
	}
	e.svc = svc
	e.spare.fill()
	return svc, nil
}

// Close ends the bootstrap. For tests: in a program the engine lives as long as the process.
func (e *Engine) Close() error {
	e.mu.Lock()
	svc := e.svc
	e.svc = nil
	e.mu.Unlock()
	e.spare.release()
	if svc == nil {
		return nil
	}
	return svc.Close()
}

// UniqueID makes an id for a new communicator (ncclGetUniqueId).
func (e *Engine) UniqueID() ([bootstrap.IDBytes]byte, error) {
	s, err := e.settings()
	if err != nil {
		return bootstrap.ID{}, err
	}
	if text := s.Str(param.NCCLCommID); text != "" {
		return bootstrap.StaticID(text)
	}
	svc, err := e.service(s)
	if err != nil {
		return bootstrap.ID{}, err
	}
	return svc.NewID()
}

// secretFor derives what the processes of a communicator prove to each other from what its ranks know before they meet.
func secretFor(material []byte) []byte {
	m := hmac.New(sha256.New, material)
	m.Write([]byte("gccl clique secret"))
	return m.Sum(nil)
}

func (e *Engine) joinTimeout(s *param.Settings) time.Duration {
	if d := s.Duration(param.GCCLInitTimeout); d > 0 {
		return d
	}
	return 30 * time.Minute
}

func joinName(rank, nranks int) string { return fmt.Sprintf("rank %d of %d", rank, nranks) }

// SetLog replaces the log of communicators made from now on.
func (e *Engine) SetLog(l *xlog.Logger) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.log = l
}
