package param

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/gccl/gccl/internal/xlog"
)

// CType is the C type under which a setting is seen through the ncclParam
// functions, with the numbers of ncclParamTypeId_t (NCCL 2.30.3 and later,
// internal header param).
type CType int

// The C types that settings have here.
const (
	CInt64  CType = 4
	CUint32 CType = 7
	CUint64 CType = 8
	CBool   CType = 9
	CString CType = 10
	CRaw    CType = 11
)

var ctypeNames = map[CType]string{
	CInt64: "int64_t", CUint32: "uint32_t", CUint64: "uint64_t", CBool: "bool", CString: "const char*", CRaw: "enum",
}

func (t CType) String() string { return ctypeNames[t] }

// ctype is the C type of our own settings: what is not a plain number is text.
func (t Type) ctype() CType {
	switch t {
	case TypeBool:
		return CBool
	case TypeInt, TypeSize:
		return CInt64
	}
	return CString
}

// ParamInfo says how a setting is seen through the ncclParam functions. A
// setting without one is not seen there.
type ParamInfo struct {
	Type      CType
	Published bool
}

// Param is a setting as the ncclParam functions show it.
type Param struct {
	Name      string
	Type      CType
	Published bool
	Text      string // for ncclParamGetParameter and ncclParamGetStr
	Raw       []byte // for ncclParamGet and the typed getters: the C object, host byte order
	Dump      string // paragraph of ncclParamDumpAll, without last newline
}

// Params returns what the ncclParam functions enumerate: published parameters,
// and with NCCL_PARAM_DUMP_ALL=1 private ones too. The order is that of the
// table.
func (s *Settings) Params() []Param {
	all := s.Bool(NCCLParamDumpAll)
	var out []Param
	for id := ID(0); id < numIDs; id++ {
		d := Lookup(id)
		if d.Param != nil && (d.Param.Published || all) {
			out = append(out, s.param(d))
		}
	}
	return out
}

// Param finds a parameter, private ones included, by its exact name.
func (s *Settings) Param(name string) (Param, bool) {
	id, ok := ByName(name)
	if !ok || Lookup(id).Name != name || Lookup(id).Param == nil {
		return Param{}, false
	}
	return s.param(Lookup(id)), true
}

func (s *Settings) param(d *Def) Param {
	return Param{
		Name: d.Name, Type: d.Param.Type, Published: d.Param.Published,
		Text: s.Str(d.ID), Raw: s.raw(d), Dump: s.dump(d),
	}
}

// raw is the value as the C object of its type.
func (s *Settings) raw(d *Def) []byte {
	e := binary.NativeEndian
	switch d.Param.Type {
	case CBool:
		if s.Bool(d.ID) {
			return []byte{1}
		}
		return []byte{0}
	case CString:
		return append([]byte(s.Str(d.ID)), 0)
	case CUint64: // the only mask of parts
		set, _ := xlog.ParseSubsys(s.Str(d.ID))
		return e.AppendUint64(nil, uint64(set))
	case CUint32: // the only mask of levels
		return e.AppendUint32(nil, ncclLevelMask(s.Str(d.ID)))
	case CRaw: // the only enum; NCCL_LOG_NONE is 0, the rest in the order of the words
		return e.AppendUint32(nil, uint32(max(s.Int(d.ID), 0)))
	}
	return e.AppendUint64(nil, uint64(s.Int(d.ID)))
}

// ncclLevelMask has one bit per level of NCCL (NCCL_LOG_VERSION is 1, TRACE 5;
// src/include/plugin/nccl_common.h), ours being finer.
func ncclLevelMask(list string) uint32 {
	set, _ := xlog.ParseLevels(list)
	var mask uint32
	for i, l := range []xlog.Level{xlog.Version, xlog.Warn, xlog.Info, xlog.Debug, xlog.Trace} {
		if set&(1<<l) != 0 {
			mask |= 2 << i
		}
	}
	return mask
}

// dump is what a person reads about one parameter.
func (s *Settings) dump(d *Def) string {
	kind := "private"
	if d.Param.Published {
		kind = "published"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s, %s): %s\n", d.Name, d.Param.Type, kind, d.Text)
	fmt.Fprintf(&b, "    value %s, from %s, default %s\n", s.Show(d.ID), s.Origin(d.ID), Defaults().Show(d.ID))
	fmt.Fprintf(&b, "    accepted: %s", d.Accepts())
	return b.String()
}
