package comm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/tune"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
)

// gcclDeviceKind_t of gccl.h. The front decides what automatic is before it asks for a communicator.
const (
	deviceHost = 1
	deviceCuda = 2
)

// ctaPolicyZero is NCCL_CTA_POLICY_ZERO of nccl.h.
const ctaPolicyZero = 2

// device is what the communicator's ranks work on besides the host; nil in host mode.
func (c *Comm) device() *Device {
	if c.cfg.DeviceKind == deviceCuda {
		return c.e.front.CUDA
	}
	return nil
}

// deviceName is the device kind for people.
func (c *Comm) deviceName() string {
	if c.cfg.DeviceKind == deviceCuda {
		return "cuda"
	}
	return "host"
}

// possible says what of the settings this build or this machine cannot do. The answer is told to all ranks.
func (c *Comm) possible() error {
	const op = "communicator init"
	if c.cfg.DeviceKind != deviceHost && c.e.front.CUDA == nil && c.set.Str(param.GCCLDevice) == "cuda" {
		return xerr.New(xerr.InvalidUsage, op, "%s: this build has no CUDA device", c.set.Describe(param.GCCLDevice)).
			WithHint("set GCCL_DEVICE to host or auto")
	}
	if c.cfg.DeviceKind == deviceCuda && c.e.front.CUDA == nil {
		return xerr.New(xerr.InvalidUsage, op, "the communicator asks for gcclDeviceCuda: this build has no CUDA device").
			WithHint("use gcclDeviceHost or gcclDeviceAuto")
	}
	if has := c.e.front.SIMD; c.cfg.SIMD != "" && !slices.Contains(has, c.cfg.SIMD) {
		return xerr.New(xerr.InvalidUsage, op, "GCCL_SIMD is %s: this CPU has %s", c.cfg.SIMD, strings.Join(has, ", ")).
			WithHint("unset GCCL_SIMD, or name one of these")
	}
	return nil
}

// checksBuffers says whether the front looks at the buffers of each collective: our own setting, or what NCCL has for it.
func checksBuffers(s *param.Settings) bool {
	return s.Bool(param.GCCLCheck) || s.Bool(param.NCCLCheckPointers) || s.Str(param.NCCLCheckMode) != "DEFAULT"
}

// pinned says which wish for a method contradicts GCCL_DETERMINISTIC.
func (c *Comm) pinned(t tune.Table) error {
	if !c.set.Bool(param.GCCLDeterministic) {
		return nil
	}
	for _, r := range t {
		switch r.Coll {
		case plan.AllReduce, plan.ReduceScatter, plan.Reduce:
		default:
			continue // nothing is folded
		}
		if !slices.Contains(tune.RankOrder, r.Method) {
			return xerr.New(xerr.InvalidUsage, "tuning", "%s asks for method %s of %s, which does not fold in the order of ranks that %s pins",
				c.set.Describe(param.NCCLAlgo), r.Method, r.Coll, c.set.Describe(param.GCCLDeterministic)).
				WithHint("unset one of the two, or name only %s for reductions", strings.Join(tune.RankOrder, " and "))
		}
	}
	return nil
}

// byCopies says whether operations that only move data are done by copies of the driver on GPUs, and why.
func (c *Comm) byCopies() (bool, string) {
	switch wish := c.set.Str(param.GCCLCudaExecutor); {
	case wish != "auto":
		return wish == "copies", c.set.Describe(param.GCCLCudaExecutor)
	case c.cfg.CTAPolicy&ctaPolicyZero != 0:
		return true, "the CTA policy is ZERO"
	}
	return false, "the CTA policy is not ZERO"
}

// wantsSpin is this rank's gccl_spin_wish. Copies are wished for where kernels are to take no room, so there they do not wait.
func (c *Comm) wantsSpin() int {
	copies, _ := c.byCopies()
	switch wish := c.set.Str(param.GCCLCudaExecutor); {
	case wish == "spin":
		return 2
	case wish == "auto" && !copies:
		return 1
	}
	return 0
}

// executor says what does the work of a communicator of GPUs, and why.
func (c *Comm) executor() string {
	for q := range c.nranks {
		if c.remote(q) {
			return "executor: the host, because ranks are on several hosts: data passes through host memory, without kernels"
		}
	}
	copies, why := c.byCopies()
	moves := "kernels"
	if copies {
		moves = "copies of the driver"
	}
	rest := fmt.Sprintf("one rank for all; reductions by kernels, data moves by %s, because %s", moves, why)
	switch {
	case c.spins:
		return fmt.Sprintf("executor: a kernel of each rank for %s; for the rest %s", c.spinWhy, rest)
	case c.set.Str(param.GCCLCudaExecutor) == "spin" && c.nranks > 1:
		return fmt.Sprintf("executor: %s; not a kernel of each rank, because %s", rest, c.spinWhy)
	}
	return "executor: " + rest
}
