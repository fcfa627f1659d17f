package nvml

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"

	nv "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gccl/gccl/topo/discover"
)

// fakeLib and fakeGPU answer what Read asks; a question beyond that is a nil pointer, which the test sees.
type fakeLib struct {
	nv.Interface
	gpus []*fakeGPU
}

func (l fakeLib) DeviceGetCount() (int, nv.Return) { return len(l.gpus), nv.SUCCESS }

func (l fakeLib) DeviceGetHandleByIndex(i int) (nv.Device, nv.Return) {
	if l.gpus[i] == nil {
		return nil, nv.ERROR_GPU_IS_LOST
	}
	return l.gpus[i], nv.SUCCESS
}

type fakeGPU struct {
	nv.Device
	uuid, bus string
	sm        [2]int
	links     []string // far end by link; empty: down
	sw        bool
	silent    bool // an old driver: knows only UUID and bus id
	mig       []*fakeGPU
	gi        int
	c2c       []uint32 // MB/s by link
	fabric    nv.GpuFabricInfo
	refuses   string // P2P to this bus id
}

func (g *fakeGPU) told() nv.Return {
	if g.silent {
		return nv.ERROR_FUNCTION_NOT_FOUND
	}
	return nv.SUCCESS
}
func (g *fakeGPU) GetUUID() (string, nv.Return) { return g.uuid, nv.SUCCESS }
func (g *fakeGPU) GetName() (string, nv.Return) { return "Fake", g.told() }
func (g *fakeGPU) GetPciInfo() (nv.PciInfo, nv.Return) {
	return pciInfo(g.bus), nv.SUCCESS
}
func pciInfo(bus string) (p nv.PciInfo) {
	for i := range bus {
		p.BusId[i] = int8(bus[i])
	}
	return p
}
func (g *fakeGPU) GetCudaComputeCapability() (int, int, nv.Return) {
	return g.sm[0], g.sm[1], g.told()
}
func (g *fakeGPU) GetMigMode() (int, int, nv.Return) {
	if g.mig == nil {
		return 0, 0, nv.ERROR_NOT_SUPPORTED
	}
	return nv.DEVICE_MIG_ENABLE, nv.DEVICE_MIG_ENABLE, nv.SUCCESS
}
func (g *fakeGPU) GetMaxMigDeviceCount() (int, nv.Return) { return len(g.mig), nv.SUCCESS }
func (g *fakeGPU) GetMigDeviceHandleByIndex(i int) (nv.Device, nv.Return) {
	if g.mig[i] == nil {
		return nil, nv.ERROR_NOT_FOUND
	}
	return g.mig[i], nv.SUCCESS
}
func (g *fakeGPU) GetGpuInstanceId() (int, nv.Return)     { return g.gi, nv.SUCCESS }
func (g *fakeGPU) GetComputeInstanceId() (int, nv.Return) { return 0, nv.SUCCESS }
func (g *fakeGPU) GetNvLinkState(l int) (nv.EnableState, nv.Return) {
	if l >= len(g.links) {
		return 0, nv.ERROR_INVALID_ARGUMENT
	}
	if g.links[l] == "" {
		return nv.FEATURE_DISABLED, nv.SUCCESS
	}
	return nv.FEATURE_ENABLED, nv.SUCCESS
}
func (g *fakeGPU) GetNvLinkCapability(int, nv.NvLinkCapability) (uint32, nv.Return) {
	return 1, nv.SUCCESS
}
func (g *fakeGPU) GetNvLinkRemotePciInfo(l int) (nv.PciInfo, nv.Return) {
	return pciInfo(g.links[l]), nv.SUCCESS
}
func (g *fakeGPU) GetNvLinkRemoteDeviceType(int) (nv.IntNvLinkDeviceType, nv.Return) {
	if g.sw {
		return nv.NVLINK_DEVICE_TYPE_SWITCH, nv.SUCCESS
	}
	return 0, nv.ERROR_NOT_SUPPORTED
}
func (g *fakeGPU) GetFieldValues(v []nv.FieldValue) nv.Return {
	var n uint32
	switch v[0].FieldId {
	case nv.FI_DEV_C2C_LINK_COUNT:
		n = uint32(len(g.c2c))
	case nv.FI_DEV_C2C_LINK_GET_STATUS:
		n = min(g.c2c[v[0].ScopeId], 1)
	case nv.FI_DEV_C2C_LINK_GET_MAX_BW:
		n = g.c2c[v[0].ScopeId]
	default:
		v[0].NvmlReturn = uint32(nv.ERROR_NOT_SUPPORTED)
	}
	v[0].ValueType = uint32(nv.VALUE_TYPE_UNSIGNED_INT)
	binary.NativeEndian.PutUint32(v[0].Value[:], n)
	return g.told()
}
func (g *fakeGPU) GetGpuFabricInfo() (nv.GpuFabricInfo, nv.Return) { return g.fabric, g.told() }
func (g *fakeGPU) GetP2PStatus(other nv.Device, index nv.GpuP2PCapsIndex) (nv.GpuP2PStatus, nv.Return) {
	if other.(*fakeGPU).bus == g.refuses || index == nv.P2P_CAPS_INDEX_NVLINK && len(g.links) == 0 {
		return nv.P2P_STATUS_CHIPSET_NOT_SUPPORTED, nv.SUCCESS
	}
	return nv.P2P_STATUS_OK, nv.SUCCESS
}

func TestLinksAreCountedByFarEnd(t *testing.T) {
	far := []string{"00000000:C3:00.0", "00000000:C3:00.0", "", "00000000:C4:00.0", "nonsense"}
	got, err := Read(fakeLib{gpus: []*fakeGPU{{uuid: "GPU-a", bus: "00000000:3B:00.0", sm: [2]int{8, 0}, links: far, sw: true}}})
	want := []discover.NVLink{{Target: "0000:c3:00.0", Switch: true, Count: 2}, {Target: "0000:c4:00.0", Switch: true, Count: 1}}
	if err != nil || len(got) != 1 || got[0].BusID != "0000:3b:00.0" || got[0].SM != 80 || !reflect.DeepEqual(got[0].Links, want) {
		t.Errorf("%v, %+v", err, got)
	}
	// A V100 is asked for six links, whatever the driver would say of more.
	many := strings.Split(strings.Repeat("0000:06:00.0,", 18), ",")
	got, _ = Read(fakeLib{gpus: []*fakeGPU{{bus: "0000:05:00.0", sm: [2]int{7, 0}, links: many}}})
	if got[0].Links[0].Count != 6 || got[0].Links[0].Switch {
		t.Errorf("V100: %+v", got[0].Links)
	}
}

func TestAccessBetweenGPUs(t *testing.T) {
	got, err := Read(fakeLib{gpus: []*fakeGPU{{bus: "0000:01:00.0", refuses: "0000:03:00.0"}, {bus: "0000:02:00.0"}, {bus: "0000:03:00.0"}}})
	if err != nil {
		t.Fatal(err)
	}
	if p := got[0].P2P; len(p) != 2 || p["0000:02:00.0"] != (discover.P2P{Read: true, Write: true}) || p["0000:03:00.0"] != (discover.P2P{}) {
		t.Errorf("from GPU 0: %+v", p)
	}
}

func TestMIG(t *testing.T) {
	whole := &fakeGPU{uuid: "GPU-a", bus: "0000:01:00.0", sm: [2]int{9, 0}, links: []string{"0000:c3:00.0"},
		mig: []*fakeGPU{{uuid: "MIG-1", gi: 3}, nil, {uuid: "MIG-2", gi: 5}}}
	got, err := Read(fakeLib{gpus: []*fakeGPU{whole, {uuid: "GPU-b", bus: "0000:02:00.0"}}})
	if err != nil || len(got) != 3 {
		t.Fatalf("%v, %+v", err, got)
	}
	for i, gi := range []int{3, 5} {
		if g := got[i]; g.UUID != fmt.Sprintf("MIG-%d", i+1) || g.MIG == nil || g.MIG.GPUInstance != gi || g.Index != 0 || g.Links != nil || g.P2P != nil || g.SM != 90 {
			t.Errorf("instance %d: %+v", i, g)
		}
	}
	if got[2].MIG != nil || got[2].Index != 1 {
		t.Errorf("the whole GPU: %+v", got[2])
	}
}

func TestC2CAndFabric(t *testing.T) {
	g := &fakeGPU{bus: "0000:01:00.0", sm: [2]int{10, 0}, c2c: []uint32{44712, 44712, 0, 44712},
		fabric: nv.GpuFabricInfo{ClusterUuid: [16]uint8{1}, CliqueId: 7, State: nv.GPU_FABRIC_STATE_COMPLETED}}
	zero := &fakeGPU{bus: "0000:02:00.0", fabric: nv.GpuFabricInfo{State: nv.GPU_FABRIC_STATE_COMPLETED}}
	got, err := Read(fakeLib{gpus: []*fakeGPU{g, zero}})
	if err != nil || !reflect.DeepEqual(got[0].C2C, []discover.C2C{{MBs: 44712, Count: 3}}) {
		t.Errorf("%v, C2C %+v", err, got[0].C2C)
	}
	if f := got[0].Fabric; f == nil || f.Clique != 7 || !f.Ready || got[1].Fabric != nil {
		t.Errorf("fabric %+v and %+v", f, got[1].Fabric)
	}
}

func TestOldDriverAndLostGPU(t *testing.T) {
	got, err := Read(fakeLib{gpus: []*fakeGPU{nil, {uuid: "GPU-b", bus: "0000:02:00.0", silent: true}}})
	if err == nil || !strings.Contains(err.Error(), "GPU 0: nvmlDeviceGetHandleByIndex") {
		t.Errorf("error %v", err)
	}
	if len(got) != 1 || got[0].Index != 1 || got[0].SM != 0 || got[0].Links != nil || got[0].Fabric != nil || got[0].Name != "" {
		t.Errorf("GPUs %+v", got)
	}
}
