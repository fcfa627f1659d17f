package param

import (
	"strings"
	"sync"
)

// source is who is asked for settings in place of the process's environment: an env plugin.
var source struct {
	mu  sync.RWMutex
	get func(name string) (string, bool)
}

// SetSource makes Process ask get for each known name; nil: the environment again. It returns when nobody is in the old one
// any more, and says whether there was one.
//
// As with NCCL a name that the source does not have counts as not set, whatever the environment says; files still count. Not asked for:
// NCCL_ENV_PLUGIN, NCCL_CONF_FILE and HOME (NCCL 2.30.7, src/plugin/env.cc).
func SetSource(get func(name string) (string, bool)) (had bool) {
	source.mu.Lock()
	defer source.mu.Unlock()
	had = source.get != nil
	source.get = get
	return had
}

// plain are names that no source is asked for.
var plain = map[string]bool{"NCCL_ENV_PLUGIN": true, "NCCL_CONF_FILE": true, "HOME": true}

// sourced replaces the known names of an environment by what the source says, and tells which those are; nil without a source.
func sourced(environ []string) (out []string, from map[string]bool) {
	source.mu.RLock()
	defer source.mu.RUnlock()
	if source.get == nil {
		return environ, nil
	}
	from = map[string]bool{}
	for id := ID(0); id < numIDs; id++ {
		d := Lookup(id)
		for _, name := range append([]string{d.Name}, d.Aliases...) {
			if !plain[name] {
				from[name] = true
			}
		}
	}
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); !from[name] {
			out = append(out, kv)
		}
	}
	for name := range from {
		if v, ok := source.get(name); ok {
			out = append(out, name+"="+v)
		}
	}
	return out, from
}
