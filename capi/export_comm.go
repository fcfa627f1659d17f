package main

// #include "bridge.h"
import "C"

import (
	"unsafe"

	"github.com/gccl/gccl/comm"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/bootstrap"
)

func putID(out *C.uchar, id [bootstrap.IDBytes]byte) {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(out)), len(id)), id[:])
}

//export gcclgo_get_unique_id
func gcclgo_get_unique_id(out *C.uchar, text *C.char) C.int32_t {
	return guard(text, func() error {
		if out == nil {
			return argument("ncclGetUniqueId", "uniqueId is NULL")
		}
		id, err := engine().UniqueID()
		if err != nil {
			return &named{"ncclGetUniqueId", err}
		}
		putID(out, id)
		return nil
	})
}

//export gcclgo_comm_get_unique_id
func gcclgo_comm_get_unique_id(p *C.struct_ncclComm, out *C.uchar, text *C.char) C.int32_t {
	return guard(text, func() error {
		const op = "ncclCommGetUniqueId"
		c, err := find(op, p)
		if err != nil {
			return err
		}
		if out == nil {
			return argument(op, "uniqueId is NULL")
		}
		id, err := c.GrowID()
		if err != nil {
			return &named{op, err}
		}
		putID(out, id)
		return nil
	})
}

//export gcclgo_config_resolve
func gcclgo_config_resolve(cfg *C.gccl_config, parent *C.struct_ncclComm, text *C.char) C.int32_t {
	return guard(text, func() error {
		const op = "communicator configuration"
		if cfg == nil {
			return argument(op, "config is NULL")
		}
		var from *comm.Config
		if parent != nil {
			p, err := find(op, parent)
			if err != nil {
				return err
			}
			c := p.Config()
			from = &c
		}
		g := configOf(cfg)
		if err := engine().Resolve(&g, from); err != nil {
			return err
		}
		putConfig(cfg, &g)
		return nil
	})
}

//export gcclgo_plan
func gcclgo_plan(p *C.struct_ncclComm, coll, class, root C.uint32_t, text *C.char) C.int32_t {
	return guard(text, func() error {
		c, err := find("plan", p)
		if err != nil {
			return err
		}
		return c.Plan(uint32(coll), uint32(class), uint32(root))
	})
}

//export gcclgo_window_deregister
func gcclgo_window_deregister(p *C.struct_ncclComm, w *C.gccl_window, text *C.char) C.int32_t {
	return guard(text, func() error {
		const op = "ncclCommWindowDeregister"
		c, err := find(op, p)
		if err != nil {
			return err
		}
		if err := c.DeregisterWindow(control.WindowAt(unsafe.Pointer(w))); err != nil {
			return &named{op, err}
		}
		return nil
	})
}

//export gcclgo_devcomm_refuse
func gcclgo_devcomm_refuse(p *C.struct_ncclComm, rc C.int32_t, why *C.char, text *C.char) C.int32_t {
	return guard(text, func() error {
		c, err := find("ncclDevCommCreate", p)
		if err == nil {
			c.RefuseResources(xerr.Code(rc), C.GoString(why))
		}
		return err
	})
}

//export gcclgo_mem_stats
func gcclgo_mem_stats(p *C.struct_ncclComm, stat C.int32_t, value *C.uint64_t, text *C.char) C.int32_t {
	return guard(text, func() error {
		const op = "ncclCommMemStats"
		c, err := find(op, p)
		if err != nil {
			return err
		}
		if value == nil {
			return argument(op, "value is NULL")
		}
		v, err := c.MemStat(int(stat))
		if err != nil {
			return &named{op, err}
		}
		*value = C.uint64_t(v)
		return nil
	})
}

//export gcclgo_stats_bytes
func gcclgo_stats_bytes(p *C.struct_ncclComm, shared, private *C.uint64_t, text *C.char) C.int32_t {
	return guard(text, func() error {
		c, err := find("statistics", p)
		if err != nil {
			return err
		}
		s, v := c.Bytes()
		if shared != nil {
			*shared = C.uint64_t(s)
		}
		if private != nil {
			*private = C.uint64_t(v)
		}
		return nil
	})
}

//export gcclgo_estimate
func gcclgo_estimate(p *C.struct_ncclComm, coll C.uint32_t, bytes C.uint64_t, us *C.float, text *C.char) C.int32_t {
	return guard(text, func() error {
		c, err := find("estimate", p)
		if err != nil {
			return err
		}
		if us == nil {
			return argument("estimate", "no place for the result")
		}
		v, err := c.Estimate(uint32(coll), uint64(bytes))
		*us = C.float(v)
		return err
	})
}
