package nvml

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	nv "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gccl/gccl/topo/discover"
)

// Read lists the GPUs and MIG instances that the library shows. What it does not tell of a GPU stays unknown; a GPU that cannot
// be opened at all is in the error, and the others are listed.
func Read(lib nv.Interface) ([]discover.GPU, error) {
	n, ret := lib.DeviceGetCount()
	if ret != nv.SUCCESS {
		return nil, fmt.Errorf("nvmlDeviceGetCount: %s", text(ret))
	}
	var out []discover.GPU
	var handles []nv.Device
	var errs []error
	for i := range n {
		d, ret := lib.DeviceGetHandleByIndex(i)
		if ret != nv.SUCCESS {
			errs = append(errs, fmt.Errorf("GPU %d: nvmlDeviceGetHandleByIndex: %s", i, text(ret)))
			continue
		}
		g := readGPU(d, i)
		if parts := readMIG(d, g); parts != nil {
			out = append(out, parts...)
			for range parts {
				handles = append(handles, nil) // no links and no access to other GPUs
			}
			continue
		}
		out, handles = append(out, g), append(handles, d)
	}
	readP2P(out, handles)
	return out, errors.Join(errs...)
}

func text(ret nv.Return) string { return fmt.Sprintf("%v", ret.Error()) }

func readGPU(d nv.Device, index int) discover.GPU {
	g := discover.GPU{Index: index}
	if v, ret := d.GetUUID(); ret == nv.SUCCESS {
		g.UUID = v
	}
	if v, ret := d.GetName(); ret == nv.SUCCESS {
		g.Name = v
	}
	if v, ret := d.GetPciInfo(); ret == nv.SUCCESS {
		g.BusID = busID(v)
	}
	if major, minor, ret := d.GetCudaComputeCapability(); ret == nv.SUCCESS {
		g.SM = 10*major + minor
	}
	g.Links = readLinks(d, g.SM)
	g.C2C = readC2C(d)
	g.Fabric = readFabric(d)
	return g
}

func busID(p nv.PciInfo) string {
	b := make([]byte, 0, len(p.BusId))
	for _, c := range p.BusId {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return discover.NormalBusID(string(bytes.TrimSpace(b)))
}

// readMIG lists the instances of a GPU in MIG mode; nil for an ordinary GPU.
func readMIG(d nv.Device, whole discover.GPU) []discover.GPU {
	mode, _, ret := d.GetMigMode()
	if ret != nv.SUCCESS || mode != nv.DEVICE_MIG_ENABLE {
		return nil
	}
	n, ret := d.GetMaxMigDeviceCount()
	if ret != nv.SUCCESS {
		n = 0
	}
	out := []discover.GPU{}
	for i := range n {
		m, ret := d.GetMigDeviceHandleByIndex(i)
		if ret != nv.SUCCESS {
			continue // not all places are taken
		}
		g := discover.GPU{Index: whole.Index, BusID: whole.BusID, SM: whole.SM, Name: whole.Name, MIG: &discover.MIG{GPUInstance: discover.Unknown, ComputeInstance: discover.Unknown}}
		if v, ret := m.GetUUID(); ret == nv.SUCCESS {
			g.UUID = v
		}
		if v, ret := m.GetName(); ret == nv.SUCCESS {
			g.Name = v
		}
		if v, ret := m.GetGpuInstanceId(); ret == nv.SUCCESS {
			g.MIG.GPUInstance = v
		}
		if v, ret := m.GetComputeInstanceId(); ret == nv.SUCCESS {
			g.MIG.ComputeInstance = v
		}
		out = append(out, g)
	}
	return out
}

// maxLinks is how many links a GPU of a compute capability has at most: NCCL 2.30.7 looks at as many.
func maxLinks(sm int) int {
	switch {
	case sm < 60:
		return 0
	case sm < 70:
		return 4
	case sm < 80:
		return 6
	case sm < 90:
		return 12
	}
	return 18
}

// readLinks counts the active links to each far end, in order of the first link.
func readLinks(d nv.Device, sm int) []discover.NVLink {
	var out []discover.NVLink
	for l := range maxLinks(sm) {
		if v, ret := d.GetNvLinkState(l); ret != nv.SUCCESS || v != nv.FEATURE_ENABLED {
			continue
		}
		if v, ret := d.GetNvLinkCapability(l, nv.NVLINK_CAP_P2P_SUPPORTED); ret != nv.SUCCESS || v == 0 {
			continue
		}
		p, ret := d.GetNvLinkRemotePciInfo(l)
		if ret != nv.SUCCESS {
			continue
		}
		far := discover.NVLink{Target: busID(p), Count: 1}
		if far.Target == "" {
			continue
		}
		if kind, ret := d.GetNvLinkRemoteDeviceType(l); ret == nv.SUCCESS {
			far.Switch = kind == nv.NVLINK_DEVICE_TYPE_SWITCH
		}
		known := false
		for i := range out {
			if out[i].Target == far.Target {
				out[i].Count++
				known = true
			}
		}
		if !known {
			out = append(out, far)
		}
	}
	return out
}

// readC2C counts the active links to the CPU by speed.
func readC2C(d nv.Device) []discover.C2C {
	n, ok := field(d, nv.FI_DEV_C2C_LINK_COUNT, 0)
	if !ok || n > 64 {
		return nil
	}
	var out []discover.C2C
	for l := range uint32(n) {
		if on, ok := field(d, nv.FI_DEV_C2C_LINK_GET_STATUS, l); !ok || on == 0 {
			continue
		}
		mbs, ok := field(d, nv.FI_DEV_C2C_LINK_GET_MAX_BW, l)
		if !ok || mbs == 0 || mbs > 1<<30 {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].MBs == int(mbs) {
			out[last].Count++
		} else {
			out = append(out, discover.C2C{MBs: int(mbs), Count: 1})
		}
	}
	return out
}

// field reads one whole number (nvml.h, nvmlDeviceGetFieldValues).
func field(d nv.Device, id, scope uint32) (uint64, bool) {
	v := []nv.FieldValue{{FieldId: id, ScopeId: scope}}
	if ret := d.GetFieldValues(v); ret != nv.SUCCESS || nv.Return(v[0].NvmlReturn) != nv.SUCCESS {
		return 0, false
	}
	switch nv.ValueType(v[0].ValueType) {
	case nv.VALUE_TYPE_UNSIGNED_INT, nv.VALUE_TYPE_SIGNED_INT:
		return uint64(binary.NativeEndian.Uint32(v[0].Value[:])), true
	case nv.VALUE_TYPE_UNSIGNED_LONG, nv.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return binary.NativeEndian.Uint64(v[0].Value[:]), true
	}
	return 0, false
}

func readFabric(d nv.Device) *discover.Fabric {
	f, ret := d.GetGpuFabricInfo()
	if ret != nv.SUCCESS || f.State == nv.GPU_FABRIC_STATE_NOT_SUPPORTED || f.ClusterUuid == [16]uint8{} {
		return nil // a cluster of zeros is a machine that has the hardware and no fabric manager
	}
	return &discover.Fabric{Cluster: f.ClusterUuid, Clique: f.CliqueId, Ready: f.State == nv.GPU_FABRIC_STATE_COMPLETED && nv.Return(f.Status) == nv.SUCCESS}
}

// readP2P asks about each pair of whole GPUs.
func readP2P(gpus []discover.GPU, handles []nv.Device) {
	for i, a := range handles {
		for j, b := range handles {
			if i == j || a == nil || b == nil || gpus[j].BusID == "" {
				continue
			}
			read, ret := a.GetP2PStatus(b, nv.P2P_CAPS_INDEX_READ)
			if ret != nv.SUCCESS {
				continue
			}
			write, ret := a.GetP2PStatus(b, nv.P2P_CAPS_INDEX_WRITE)
			if ret != nv.SUCCESS {
				continue
			}
			link, ret := a.GetP2PStatus(b, nv.P2P_CAPS_INDEX_NVLINK)
			if gpus[i].P2P == nil {
				gpus[i].P2P = map[string]discover.P2P{}
			}
			gpus[i].P2P[gpus[j].BusID] = discover.P2P{Read: read == nv.P2P_STATUS_OK, Write: write == nv.P2P_STATUS_OK, NVLink: ret == nv.SUCCESS && link == nv.P2P_STATUS_OK}
		}
	}
}
