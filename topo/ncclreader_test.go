package topo

import (
	"fmt"
	"strings"
)

// ncclReads is a second reader, as strict as that of NCCL 2.30.7 (shared/topo/FORMAT.md, section 1). It returns what that one
// would not take or would drop. It is written against the list of restrictions, without our reader.
func ncclReads(text string) []string {
	p := &strictReader{text: text, line: 1}
	p.document()
	return p.problems
}

type strictReader struct {
	text     string
	at, line int
	elements int
	problems []string
}

func (p *strictReader) wrong(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf("line %d: ", p.line)+fmt.Sprintf(format, args...))
	p.at = len(p.text) // one is enough
}

func (p *strictReader) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *strictReader) next() byte {
	c := p.peek()
	p.at++
	if c == '\n' {
		p.line++
	}
	return c
}

func (p *strictReader) blank() {
	for p.peek() == ' ' || p.peek() == '\n' || p.peek() == '\r' {
		p.next()
	}
}

func (p *strictReader) document() {
	type open struct {
		name string
		kids int
	}
	var stack []open
	roots := 0
	for {
		p.blank()
		if p.at >= len(p.text) {
			break
		}
		if p.next() != '<' {
			p.wrong("%q between elements", p.text[p.at-1])
			return
		}
		if strings.HasPrefix(p.text[p.at:], "!--") {
			end := strings.Index(p.text[p.at:], "-->")
			if end < 0 {
				p.wrong("a comment does not end")
				return
			}
			p.at += end + 3
			continue
		}
		if p.peek() == '?' {
			p.wrong("a declaration swallows the document")
			return
		}
		if p.peek() == '/' {
			p.next()
			name := p.word(">")
			if p.next() != '>' || len(stack) == 0 || stack[len(stack)-1].name != name {
				p.wrong("</%s> closes nothing", name)
				return
			}
			stack = stack[:len(stack)-1]
			continue
		}
		name, attrs, alone := p.tag()
		if p.at > len(p.text) || name == "" {
			p.wrong("a tag does not end")
			return
		}
		if len(stack) == 0 {
			roots++
			if attrs["version"] != "1" || (name != "system" && name != "graphs") {
				p.wrong("root %s version %q", name, attrs["version"])
				return
			}
		} else {
			p.elements++
			stack[len(stack)-1].kids++
			if stack[len(stack)-1].kids > 640 {
				p.wrong("more than 640 children")
				return
			}
		}
		if !alone {
			stack = append(stack, open{name: name})
		}
	}
	if len(p.problems) > 0 {
		return
	}
	if len(stack) > 0 || roots != 1 {
		p.wrong("%d elements stay open, %d roots", len(stack), roots)
	}
	if p.elements > 256 && strings.Contains(p.text, "<system") {
		p.wrong("%d elements", p.elements)
	}
}

func (p *strictReader) word(ends string) string {
	from := p.at
	for p.at < len(p.text) && !strings.ContainsRune(ends, rune(p.peek())) {
		p.next()
	}
	return p.text[from:min(p.at, len(p.text))]
}

func (p *strictReader) tag() (name string, attrs map[string]string, alone bool) {
	attrs = map[string]string{}
	name = p.word(" />\n\t")
	if len(name) > 253 {
		p.wrong("a name of %d characters", len(name))
		return "", nil, false
	}
	for {
		switch p.next() {
		case '>':
			return name, attrs, false
		case '/':
			if p.next() != '>' {
				p.wrong("/ inside a tag")
				return "", nil, false
			}
			return name, attrs, true
		case ' ':
		default:
			return "", nil, false
		}
		key := p.word("= />\n\t")
		if p.next() != '=' || key == "" || len(key) > 253 {
			p.wrong("attribute %q of %s", key, name)
			return "", nil, false
		}
		quote := p.next()
		if quote != '"' && quote != '\'' {
			p.wrong("attribute %s of %s has no quote", key, name)
			return "", nil, false
		}
		value := p.word(string(quote) + "\n\t")
		if p.next() != quote {
			p.wrong("attribute %s of %s breaks the line or has a tab", key, name)
			return "", nil, false
		}
		if len(value) > 253 || strings.ContainsAny(value, "&<>") {
			p.wrong("value %.40q... of %d characters, or with an entity", value, len(value))
			return "", nil, false
		}
		attrs[key] = value
		if len(attrs) > 16 {
			p.wrong("%s has more than 16 attributes", name)
			return "", nil, false
		}
	}
}
