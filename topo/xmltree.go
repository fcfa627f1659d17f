package topo

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gccl/gccl/internal/xerr"
)

// Limits of what is read at all: far above any machine, so that a wrong file ends with an error and not with the memory.
const (
	maxDepth    = 64
	maxElements = 1 << 18
	maxBytes    = 64 << 20
)

// FileError says what is wrong with a topology or graph file, and where.
type FileError struct {
	File    string
	Line    int
	Element string // its name; empty before the first
	Reason  string
}

func (e *FileError) Error() string {
	if e.Element == "" {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
	}
	return fmt.Sprintf("%s:%d: element %s: %s", e.File, e.Line, e.Element, e.Reason)
}

// Unwrap makes it an error of usage.
func (e *FileError) Unwrap() error { return xerr.InvalidUsage }

// element is one XML element. Text, comments and declarations are not kept.
type element struct {
	file  string
	line  int
	name  string
	attrs []xml.Attr
	kids  []*element
}

func (e *element) wrong(format string, args ...any) error {
	return &FileError{File: e.file, Line: e.line, Element: e.name, Reason: fmt.Sprintf(format, args...)}
}

func (e *element) pos() Pos { return Pos{File: e.file, Line: e.line} }

// parseTree reads one document. It takes more than NCCL's own reader: declarations, tabs, line breaks in tags, values of any
// length, entities.
func parseTree(file string, data []byte) (*element, error) {
	at := func(line int, name, format string, args ...any) error {
		return &FileError{File: file, Line: line, Element: name, Reason: fmt.Sprintf(format, args...)}
	}
	if len(data) > maxBytes {
		return nil, at(1, "", "the file has %d bytes; at most %d are read", len(data), maxBytes)
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	var root *element
	var open []*element
	count := 0
	top := func() string {
		if len(open) == 0 {
			return ""
		}
		return open[len(open)-1].name
	}
	for {
		line, _ := d.InputPos()
		t, err := d.RawToken()
		if err == io.EOF {
			break
		}
		if err != nil {
			if s, ok := err.(*xml.SyntaxError); ok {
				return nil, at(s.Line, top(), "not XML: %s", s.Msg)
			}
			return nil, at(line, top(), "not readable: %v", err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			e := &element{file: file, line: line, name: t.Name.Local, attrs: append([]xml.Attr(nil), t.Attr...)}
			if count++; count > maxElements {
				return nil, e.wrong("more than %d elements", maxElements)
			}
			if len(open) == maxDepth {
				return nil, e.wrong("nested more than %d deep", maxDepth)
			}
			for i, a := range e.attrs {
				for _, b := range e.attrs[:i] {
					if a.Name.Local == b.Name.Local {
						return nil, e.wrong("attribute %s stands twice", a.Name.Local)
					}
				}
			}
			if len(open) > 0 {
				p := open[len(open)-1]
				p.kids = append(p.kids, e)
			} else if root != nil {
				return nil, e.wrong("a second root element; the first is %s at line %d", root.name, root.line)
			} else {
				root = e
			}
			open = append(open, e)
		case xml.EndElement:
			if len(open) == 0 || top() != t.Name.Local {
				return nil, at(line, top(), "closed by </%s>", t.Name.Local)
			}
			open = open[:len(open)-1]
		case xml.CharData:
			if text := strings.TrimSpace(string(t)); text != "" {
				return nil, at(line, top(), "text %.40q between elements", text)
			}
		}
	}
	line, _ := d.InputPos()
	switch {
	case len(open) > 0:
		return nil, open[len(open)-1].wrong("not closed at the end of the file")
	case root == nil:
		return nil, at(line, "", "no element: the file is empty")
	}
	return root, nil
}

// has and the getters below read attributes.
func (e *element) has(name string) bool {
	for _, a := range e.attrs {
		if a.Name.Local == name {
			return true
		}
	}
	return false
}

func (e *element) text(name string) string {
	for _, a := range e.attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// reader reads the attributes of an element and keeps the first error.
type reader struct{ err error }

// number reads a whole number, decimal or 0x…; missing gives Unknown.
func (r *reader) number(e *element, name string) int {
	if !e.has(name) {
		return Unknown
	}
	v := strings.TrimSpace(e.text(name))
	n, err := parseNumber(v)
	if err != nil || n > 1<<40 || n < -1<<40 {
		r.fail(e.wrong("attribute %s is %q; a whole number is needed", name, v))
		return Unknown
	}
	return int(n)
}

func (r *reader) decimal(e *element, name string) float64 {
	if !e.has(name) {
		return 0
	}
	v := strings.TrimSpace(e.text(name))
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || f != f || f > 1e12 || f < -1e12 {
		r.fail(e.wrong("attribute %s is %q; a number is needed", name, v))
		return 0
	}
	return f
}

func (r *reader) need(e *element, names ...string) {
	for _, n := range names {
		if !e.has(n) {
			r.fail(e.wrong("attribute %s is missing", n))
		}
	}
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// parseNumber reads decimal and 0x… numbers. A leading zero does not make a number octal: nobody means that.
func parseNumber(v string) (int64, error) {
	body, neg := strings.CutPrefix(v, "-")
	var n uint64
	var err error
	if h, ok := cutHex(body); ok {
		n, err = strconv.ParseUint(h, 16, 63)
	} else {
		n, err = strconv.ParseUint(body, 10, 63)
	}
	if neg {
		return -int64(n), err
	}
	return int64(n), err
}

func cutHex(v string) (string, bool) {
	if len(v) > 2 && v[0] == '0' && (v[1] == 'x' || v[1] == 'X') {
		return v[2:], true
	}
	return v, false
}
