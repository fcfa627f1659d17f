package xlog

import (
	"strconv"
	"strings"
)

// ExpandFile turns a value of NCCL_DEBUG_FILE into a path: %h is the host, %p
// the process, %% a percent sign. Anything else after a percent sign stays as it
// is, percent sign included. Slashes in the host are replaced, so that it cannot
// lead into another directory.
func ExpandFile(pattern, host string, pid int) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		if c != '%' || i+1 == len(pattern) {
			b.WriteByte(c)
			continue
		}
		i++
		switch pattern[i] {
		case 'h':
			b.WriteString(strings.ReplaceAll(host, "/", "_"))
		case 'p':
			b.WriteString(strconv.Itoa(pid))
		case '%':
			b.WriteByte('%')
		default:
			b.WriteByte('%')
			b.WriteByte(pattern[i])
		}
	}
	return b.String()
}
