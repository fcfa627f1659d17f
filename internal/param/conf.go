package param

import (
	"errors"
	"io/fs"
	"strings"
)

// systemConf is read always, after the user's file.
const systemConf = "/etc/nccl.conf"

// setting is one NAME=VALUE with its place.
type setting struct {
	name, value string
	origin      Origin
}

// ParseConf reads a configuration file: lines NAME=VALUE, a line that starts
// with # is a comment, lines without = are ignored, nothing is trimmed or
// unquoted, and of two lines with one name the first holds (NCCL 2.30.7,
// src/misc/param.cc: a line never overrides what is set). CR and LF are dropped.
func ParseConf(data string, each func(name, value string)) {
	seen := map[string]bool{}
	for _, line := range strings.Split(data, "\n") {
		line = strings.TrimRight(line, "\r")
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, val, ok := strings.Cut(line, "=")
		if !ok || name == "" || seen[name] || strings.IndexByte(line, 0) >= 0 {
			continue
		}
		seen[name] = true
		each(name, val)
	}
}

// gather returns every variable in force with its origin: process environment,
// then the user's file, then the system's; the first place that has a name wins.
func gather(env Env) (map[string]setting, []Warning) {
	all := map[string]setting{}
	environ, plugin := env.Environ(), map[string]bool(nil)
	if env == Process() {
		environ, plugin = sourced(environ)
	}
	for _, kv := range environ {
		name, val, ok := strings.Cut(kv, "=")
		if _, twice := all[name]; ok && !twice {
			kind := FromEnvironment
			if plugin[name] {
				kind = FromPlugin
			}
			all[name] = setting{name, val, Origin{Kind: kind, Name: name}}
		}
	}
	user, named := all["NCCL_CONF_FILE"].value, true
	if user == "" {
		named = false
		if home := all["HOME"].value; home != "" {
			user = home + "/.nccl.conf"
		}
	}
	var warns []Warning
	read := func(path string, mustExist bool) {
		data, err := env.ReadFile(path)
		if err != nil {
			if mustExist || !errors.Is(err, fs.ErrNotExist) {
				warns = append(warns, Warning{Name: "NCCL_CONF_FILE", Text: "cannot read configuration file " + path + ": " + reason(err)})
			}
			return
		}
		ParseConf(string(data), func(name, val string) {
			if _, set := all[name]; !set {
				all[name] = setting{name, val, Origin{Kind: FromFile, Path: path, Name: name}}
			}
		})
	}
	if user != "" {
		read(user, named)
	}
	read(systemConf, false)
	return all, warns
}

// reason is the error without the path, which the message already has.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
