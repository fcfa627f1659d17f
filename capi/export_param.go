package main

// #include "core.h"
import "C"

import (
	"encoding/binary"
	"strings"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
)

// Indices that C holds are places in the settings' own table, which does not change.

//export gcclgo_param_find
func gcclgo_param_find(key *C.char, index *C.int32_t, text *C.char) C.int32_t {
	return guard(text, func() error {
		const op = "ncclParamBind"
		if key == nil || index == nil {
			return argument(op, "key or handle is NULL")
		}
		name := C.GoString(key)
		set, _, _ := param.Load()
		if _, ok := set.Param(name); !ok {
			return xerr.New(xerr.InvalidArgument, op, "parameter %q is unknown", name).WithHint("ncclParamGetAllParameterKeys lists the parameters")
		}
		id, _ := param.ByName(name)
		*index = C.int32_t(id)
		return nil
	})
}

//export gcclgo_param_get
func gcclgo_param_get(index C.int32_t, kind *C.int32_t, integer *C.int64_t, value *C.char, room C.int32_t, length *C.int32_t, text *C.char) C.int32_t {
	return guard(text, func() error {
		const op = "ncclParamGet"
		if index < 0 || int(index) >= len(param.All()) {
			return argument(op, "parameter handle %d is not valid", int(index))
		}
		set, _, _ := param.Load()
		p, ok := set.Param(param.Lookup(param.ID(index)).Name)
		if !ok {
			return argument(op, "parameter handle %d is not valid", int(index))
		}
		if kind != nil {
			*kind = C.int32_t(p.Type)
		}
		if integer != nil && p.Type != param.CString {
			*integer = C.int64_t(rawInteger(p.Raw))
		}
		if length != nil {
			*length = C.int32_t(len(p.Text))
		}
		putText(value, int(room), p.Text)
		return nil
	})
}

func rawInteger(b []byte) int64 {
	switch len(b) {
	case 1:
		return int64(b[0])
	case 4:
		return int64(int32(binary.NativeEndian.Uint32(b)))
	case 8:
		return int64(binary.NativeEndian.Uint64(b))
	}
	return 0
}

//export gcclgo_param_key
func gcclgo_param_key(index C.int32_t, key *C.char, room C.int32_t, count *C.int32_t) C.int32_t {
	return guard(nil, func() error {
		set, _, _ := param.Load()
		all := set.Params()
		if count != nil {
			*count = C.int32_t(len(all))
		}
		if key == nil {
			return nil
		}
		if index < 0 || int(index) >= len(all) {
			return argument("ncclParamGetAllParameterKeys", "there is no parameter %d", int(index))
		}
		putText(key, int(room), all[index].Name)
		return nil
	})
}

//export gcclgo_param_dump
func gcclgo_param_dump(out *C.char, room C.int64_t, length *C.int64_t) C.int32_t {
	return guard(nil, func() error {
		set, _, _ := param.Load()
		var b strings.Builder
		for _, p := range set.Params() {
			b.WriteString(p.Dump)
			b.WriteByte('\n')
		}
		if length != nil {
			*length = C.int64_t(b.Len())
		}
		putText(out, int(room), b.String())
		return nil
	})
}
