package param

import "strings"

//go:generate go run github.com/gccl/gccl/cmd/gccl-gen env --out ../../docs/env.md

// table has one Def per ID; the slices it is made from group settings by topic.
// Our own public settings are seen through the ncclParam functions like those of
// NCCL's registry.
var table, byName = buildTable()

func buildTable() (t [numIDs]Def, names map[string]ID) {
	names = make(map[string]ID)
	for _, group := range [][]Def{gcclDefs, logDefs, socketDefs, netDefs, ginDefs, toolDefs, pathDefs, methodDefs, memoryDefs, commDefs} {
		for _, d := range group {
			if d.Param == nil && d.State == Public && strings.HasPrefix(d.Name, "GCCL_") {
				d.Param = &ParamInfo{Type: d.Type.ctype(), Published: true}
			}
			t[d.ID] = d
			names[d.Name] = d.ID
			for _, a := range d.Aliases {
				names[a] = d.ID
			}
		}
	}
	return t, names
}

// Lookup returns the table's line of a setting. The caller does not change it.
func Lookup(id ID) *Def {
	if id < 0 || id >= numIDs {
		return &Def{ID: id}
	}
	return &table[id]
}

// ByName finds a setting by name or alias.
func ByName(name string) (ID, bool) {
	id, ok := byName[name]
	return id, ok
}

// All returns the IDs of all settings in the order of the table.
func All() []ID {
	out := make([]ID, numIDs)
	for i := range out {
		out[i] = ID(i)
	}
	return out
}

func known(name string) bool { _, ok := byName[name]; return ok }
