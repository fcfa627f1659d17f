package param

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// parse reads raw as d wants it. The error says what is accepted.
func parse(d *Def, raw string) (value, error) {
	v := value{raw: raw}
	word := strings.TrimSpace(raw)
	if d.AutoOK() && (word == "" || strings.EqualFold(word, "auto")) {
		v.auto, v.text = true, "auto"
		return v, nil
	}
	switch d.Type {
	case TypeString:
		v.text = raw
		return v, nil
	case TypeList:
		v.list = splitList(raw)
		v.text = strings.Join(v.list, ",")
		return v, nil
	case TypeEnum:
		return parseEnum(d, word, v)
	case TypeRange:
		return parseRange(d, word, v)
	}
	var err error
	switch d.Type {
	case TypeSize:
		v.num, err = ParseSize(word)
	case TypeDuration:
		v.num, err = parseDuration(word, d.Unit)
	default:
		v.num, err = ParseInt(word)
	}
	if err == nil {
		err = d.clampOrRefuse(&v.num)
	}
	if err != nil {
		return value{}, fmt.Errorf("accepted: %s", d.Accepts())
	}
	v.text = d.format(v.num)
	return v, nil
}

// clampOrRefuse applies the range of the table.
func (d *Def) clampOrRefuse(n *int64) error {
	if d.Type == TypeBool {
		if *n != 0 && *n != 1 {
			return strconv.ErrRange
		}
		return nil
	}
	if d.Min == 0 && d.Max == 0 {
		return nil
	}
	if *n > d.Max && d.Clamp {
		*n = d.Max
	}
	if *n < d.Min || *n > d.Max {
		return strconv.ErrRange
	}
	return nil
}

// format writes a number in its canonical form.
func (d *Def) format(n int64) string {
	if d.Type == TypeDuration {
		return formatDuration(time.Duration(n))
	}
	return strconv.FormatInt(n, 10)
}

// bound writes an end of the range for people: 64KiB, not 65536.
func (d *Def) bound(n int64) string {
	if d.Type != TypeSize || n == 0 {
		return d.format(n)
	}
	unit := 0
	for unit < 4 && n%1024 == 0 {
		n /= 1024
		unit++
	}
	return strconv.FormatInt(n, 10) + [...]string{"", "KiB", "MiB", "GiB", "TiB"}[unit]
}

// formatDuration drops the zero minutes and seconds that Go prints.
func formatDuration(t time.Duration) string {
	s := t.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Accepts says in words what values a setting takes.
func (d *Def) Accepts() string {
	auto := ""
	if d.AutoOK() {
		auto = "auto, or "
	}
	span := ""
	if d.Min != 0 || d.Max != 0 {
		lo, hi := d.bound(d.Min), d.bound(d.Max)
		switch {
		case d.Max == math.MaxInt64:
			span = ", at least " + lo
		case d.Clamp:
			span = fmt.Sprintf(", %s to %s (more counts as %s)", lo, hi, hi)
		default:
			span = fmt.Sprintf(", %s to %s", lo, hi)
		}
	}
	switch d.Type {
	case TypeInt:
		return auto + "an integer such as 8 or 0x8" + span
	case TypeBool:
		return auto + "0 or 1"
	case TypeSize:
		return auto + "bytes such as 4194304, 4M, 4MB or 4MiB (powers of 1024)" + span
	case TypeDuration:
		return auto + "a time such as 30m, 10s or 500ms; a bare number is in " + d.Unit + span
	case TypeEnum:
		return strings.Join(d.Values, ", ")
	case TypeList:
		return "a comma list of words"
	case TypeRange:
		return fmt.Sprintf("two numbers such as %d-%d, from %d to %d", 20000, 20100, d.Min, d.Max)
	}
	return "any text"
}

// ParseInt reads what strtoll reads with base 0: decimal, 0x hexadecimal or 0
// octal, with a sign. Spaces around it are dropped; anything else behind the
// number, or a number beyond 64 bits, is refused.
func ParseInt(s string) (int64, error) {
	s = strings.TrimSpace(s)
	digits, negative := strings.CutPrefix(s, "-")
	if !negative {
		digits = strings.TrimPrefix(s, "+")
	}
	base := 10
	if rest, ok := cutHex(digits); ok {
		base, digits = 16, rest
	} else if len(digits) > 1 && digits[0] == '0' {
		base, digits = 8, digits[1:]
	}
	if digits == "" || digits[0] == '-' || digits[0] == '+' {
		return 0, strconv.ErrSyntax
	}
	if negative {
		digits = "-" + digits
	}
	return strconv.ParseInt(digits, base, 64)
}

func cutHex(s string) (string, bool) {
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		return s[2:], true
	}
	return s, false
}

// ParseSize reads a number of bytes: a bare number as ParseInt does, or one
// with a unit K, M, G, T (alone, with B or with iB), which are powers of 1024
// as usual in this field. One space may stand before the unit. Not negative.
func ParseSize(s string) (int64, error) {
	s = strings.TrimSpace(s)
	end := len(s)
	if _, hex := cutHex(s); !hex {
		end = strings.IndexFunc(s, func(r rune) bool { return r != '+' && r != '-' && (r < '0' || r > '9') })
		if end < 0 {
			end = len(s)
		}
	}
	n, err := ParseInt(s[:end])
	if err != nil {
		return 0, err
	}
	shift, ok := unitShift(strings.TrimPrefix(s[end:], " "))
	if !ok {
		return 0, strconv.ErrSyntax
	}
	if n < 0 || n > math.MaxInt64>>shift {
		return 0, strconv.ErrRange
	}
	return n << shift, nil
}

func unitShift(unit string) (uint, bool) {
	u := strings.ToUpper(unit)
	if u == "" || u == "B" {
		return 0, true
	}
	i := strings.IndexByte("KMGT", u[0])
	if i < 0 {
		return 0, false
	}
	if rest := u[1:]; rest != "" && rest != "B" && rest != "IB" {
		return 0, false
	}
	return uint(10 * (i + 1)), true
}

// unitDuration is what a bare number means for a unit of the table.
var unitDuration = map[string]time.Duration{
	"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond,
}

func parseDuration(s, unit string) (int64, error) {
	if n, err := ParseInt(s); err == nil {
		u := unitDuration[unit]
		if n < 0 || u == 0 || n > math.MaxInt64/int64(u) {
			return 0, strconv.ErrRange
		}
		return n * int64(u), nil
	}
	t, err := time.ParseDuration(s)
	if err != nil || t < 0 {
		return 0, strconv.ErrSyntax
	}
	return int64(t), nil
}

func parseEnum(d *Def, word string, v value) (value, error) {
	for i, w := range d.Values {
		if strings.EqualFold(w, word) {
			v.text, v.num = w, int64(i)
			return v, nil
		}
	}
	if word == "" && d.Default == "" {
		return v, nil
	}
	return value{}, fmt.Errorf("accepted: %s", d.Accepts())
}

func parseRange(d *Def, word string, v value) (value, error) {
	if word == "" {
		return v, nil
	}
	bad := fmt.Errorf("accepted: %s", d.Accepts())
	lo, hi, both := strings.Cut(word, "-")
	if !both {
		hi = lo
	}
	var err1, err2 error
	v.num, err1 = ParseInt(lo)
	v.hi, err2 = ParseInt(hi)
	if err1 != nil || err2 != nil || v.num > v.hi || v.num < d.Min || v.hi > d.Max {
		return value{}, bad
	}
	v.text = fmt.Sprintf("%d-%d", v.num, v.hi)
	return v, nil
}

// splitList takes a comma list apart; spaces around words and empty words go.
func splitList(s string) []string {
	var out []string
	for _, w := range strings.Split(s, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}
