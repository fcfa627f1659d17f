package discover

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// root is the file system to look at: "/" or a recorded one.
type root string

// maxFact bounds what is read of one file; sysfs itself gives at most a page.
const maxFact = 4096

func (r root) path(elem ...string) string {
	return filepath.Join(append([]string{string(r)}, elem...)...)
}

// text reads a small file without its last white space; empty if it cannot be read.
func (r root) text(elem ...string) string {
	f, err := os.Open(r.path(elem...))
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, maxFact)
	n, _ := f.Read(b)
	return strings.TrimSpace(string(b[:max(n, 0)]))
}

// number reads a decimal or 0x hexadecimal number.
func (r root) number(elem ...string) (int, bool) {
	n, err := strconv.ParseInt(r.text(elem...), 0, 64)
	return int(n), err == nil
}

// names lists a folder in order of names; none if it cannot be read.
func (r root) names(elem ...string) []string {
	entries, err := os.ReadDir(r.path(elem...))
	if err != nil {
		return nil
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Name()
	}
	return out
}

// real resolves links below the root and gives the path from the root; empty if there is no such file.
func (r root) real(elem ...string) string {
	base, err := filepath.EvalSymlinks(string(r))
	if err != nil {
		return ""
	}
	p, err := filepath.EvalSymlinks(r.path(elem...))
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(base, p)
	if err != nil || strings.HasPrefix(rel, "..") {
		return ""
	}
	return rel
}
