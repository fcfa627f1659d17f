package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// oldestDriver is the first branch that runs CUDA 12 (CUDA Toolkit release notes, table of minor version compatibility).
const oldestDriver = 525

var driverVersion = regexp.MustCompile(`\b(\d{3})\.\d+(\.\d+)?\b`)

func checkDriver(m *machine) []finding {
	gpus := m.gpusOnBus()
	text := m.text("proc/driver/nvidia/version")
	if text == "" {
		if len(gpus) == 0 {
			return one(ok, "there is no NVIDIA GPU: communicators work in host mode")
		}
		return with(one(fail, "PCI shows %s, but the kernel driver is not loaded here", plural(len(gpus), "NVIDIA GPU")),
			"install the driver; in a container, start it with the GPUs (docker run --gpus all, NVIDIA container toolkit)")
	}
	line, _, _ := strings.Cut(text, "\n")
	version := driverVersion.FindString(line)
	found := "kernel driver " + version
	if strings.Contains(line, "Open Kernel Module") {
		found += ", open kernel modules"
	}
	var missing []string
	for _, dev := range []string{"dev/nvidiactl", "dev/nvidia-uvm"} {
		if !m.exists(dev) {
			missing = append(missing, "/"+dev)
		}
	}
	if len(missing) > 0 {
		return with(one(fail, "%s, but %s missing", found, strings.Join(missing, ", ")),
			"run nvidia-modprobe -u -c 0, or give the container the devices (docker run --gpus all)")
	}
	if major, err := strconv.Atoi(strings.SplitN(version, ".", 2)[0]); err == nil && major < oldestDriver {
		return with(one(warn, "%s is older than CUDA 12", found), fmt.Sprintf("install a driver of branch %d or newer", oldestDriver))
	}
	return one(ok, "%s", found)
}

func checkNVML(m *machine) []finding {
	gpus, err := m.gpus()
	onBus := len(m.gpusOnBus())
	if err != nil {
		verdict, remedy := fail, "restart the machine, or reload the kernel module, if the driver was updated; in a container the library and the kernel module must be of one version"
		if onBus == 0 && !m.exists("proc/driver/nvidia/version") {
			return one(ok, "not asked for GPUs: %v", err)
		}
		return with(one(verdict, "NVML does not answer: %v", err), remedy)
	}
	whole := map[string]bool{}
	f := finding{Verdict: ok}
	for _, g := range gpus {
		whole[g.BusID] = true
		kind := ""
		if g.MIG != nil {
			kind = fmt.Sprintf(", MIG instance %d/%d", g.MIG.GPUInstance, g.MIG.ComputeInstance)
		}
		f.Details = append(f.Details, fmt.Sprintf("GPU %d: %s at %s%s", g.Index, g.Name, g.BusID, kind))
	}
	f.Found = fmt.Sprintf("NVML shows %s", plural(len(whole), "GPU"))
	if visible, set := m.env["CUDA_VISIBLE_DEVICES"]; set {
		f.Details = append(f.Details, fmt.Sprintf("CUDA_VISIBLE_DEVICES=%q narrows what CUDA sees", visible))
	}
	if len(whole) < onBus {
		f.Verdict = warn
		f.Found += fmt.Sprintf(", PCI shows %d", onBus)
		f.Remedy = "a GPU that the driver does not show has failed (dmesg | grep -i xid) or is kept from this container"
	}
	return []finding{f}
}

// memoryModules are the kernel modules with which an RDMA device reaches GPU memory.
var memoryModules = []string{"sys/module/nvidia_peermem", "sys/module/nv_peer_mem", "sys/kernel/mm/memory_peers/nv_mem"}

func checkGPUDirect(m *machine) []finding {
	if len(m.gpusOnBus()) == 0 || len(m.rdmaDevices()) == 0 {
		return one(ok, "not needed: there are not both a GPU and an RDMA device")
	}
	for _, p := range memoryModules {
		if m.exists(p) {
			return one(ok, "%s is loaded", p[strings.LastIndexByte(p, '/')+1:])
		}
	}
	major, minor := kernelVersion(m)
	dmabuf := major > 5 || major == 5 && minor >= 12 // dma-buf in RDMA core: Linux 5.12
	if dmabuf && strings.Contains(m.text("proc/driver/nvidia/version"), "Open Kernel Module") {
		return one(ok, "dma-buf: the kernel is %d.%d and the driver has open kernel modules", major, minor)
	}
	return with(one(warn, "RDMA devices cannot reach GPU memory: no peer memory module is loaded, and there is no dma-buf (kernel %d.%d)", major, minor),
		"modprobe nvidia-peermem, or install the driver with open kernel modules on Linux 5.12 or newer")
}

func kernelVersion(m *machine) (major, minor int) {
	_, _ = fmt.Sscanf(m.text("proc/sys/kernel/osrelease"), "%d.%d", &major, &minor) // 0.0 if unknown
	return major, minor
}

func checkMPS(m *machine) []finding {
	dir, set := m.env["CUDA_MPS_PIPE_DIRECTORY"]
	if !set {
		dir = "/tmp/nvidia-mps" // CUDA Multi-Process Service, "Environment variables"
	}
	running := false
	for _, p := range m.glob("proc/[0-9]*/comm") {
		if strings.HasPrefix(m.text(p), "nvidia-cuda-mps") {
			running = true
		}
	}
	control := m.exists(dir, "control")
	switch {
	case control && running:
		return one(ok, "MPS runs, pipes in %s", dir)
	case control:
		return one(note, "there are MPS pipes in %s, but no MPS process is to be seen here: it may be outside this container, or have ended", dir)
	case set:
		return with(one(fail, "CUDA_MPS_PIPE_DIRECTORY is %s, where there is no MPS: CUDA will not start", dir),
			"start nvidia-cuda-mps-control -d with the same variable, or unset it")
	case running:
		return with(one(warn, "MPS runs, but not with pipes in %s: this environment does not use it", dir), "set CUDA_MPS_PIPE_DIRECTORY as the daemon has it")
	case len(m.gpusOnBus()) == 0:
		return one(ok, "not needed without a GPU")
	}
	return one(note, "MPS does not run: processes that share a GPU take turns; nvidia-cuda-mps-control -d lets them run side by side")
}
