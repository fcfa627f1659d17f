package param

// CType is the C type under which a setting is seen through the ncclParam
// functions, with the numbers of ncclParamTypeId_t (NCCL 2.30.3 and later,
// internal header param).
type CType int

// The C types that settings have here.
const (
	CInt64  CType = 4
	CBool   CType = 9
	CString CType = 10
	CRaw    CType = 11
)

// Widths of raw values: an enum is an int, a mask of subsystems has 64 bits.
const (
	CRaw32 CType = CRaw | 32<<8
	CRaw64 CType = CRaw | 64<<8
)

// ParamInfo says how a setting is seen through the ncclParam functions.
type ParamInfo struct {
	Type      CType
	Published bool
}
