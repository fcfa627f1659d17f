// Package tune owns the choice of a method: a table that is made from what all ranks know alike, so that all ranks
// choose alike. Its hash is compared when a communicator is made. It must not know buffers, devices or the
// environment.
package tune

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

// NoLimit is the MaxBytes of a row for every size.
const NoLimit = math.MaxInt64

// Row says which method to use for a collective up to a size.
type Row struct {
	Coll     plan.Coll
	MaxBytes int64 // inclusive, of the largest send buffer of a rank
	Method   string
	Proto    string // "" is simple
	Channels int    // 0 is one
}

// plain says whether a row has nothing but a method.
func (r *Row) plain() bool { return (r.Proto == "" || r.Proto == "simple") && r.Channels <= 1 }

// Table is a list of rows. For a collective, rows are in order of size and the last one has no limit.
type Table []Row

// Row is what decides about a collective whose largest send buffer has this size, if the table has it.
func (t Table) Row(c plan.Coll, bytes int64) (Row, bool) {
	for _, r := range t {
		if r.Coll == c && bytes <= r.MaxBytes {
			return r, true
		}
	}
	return Row{}, false
}

// Pick is the method of that row; "" if there is none.
func (t Table) Pick(c plan.Coll, bytes int64) string {
	r, _ := t.Row(c, bytes)
	return r.Method
}

// String is the text form: a line "collective bytes method" for each row, bytes "*" for no limit; then protocol and channels,
// unless they are simple and one.
func (t Table) String() string {
	var b strings.Builder
	for _, r := range t {
		limit := "*"
		if r.MaxBytes != NoLimit {
			limit = strconv.FormatInt(r.MaxBytes, 10)
		}
		fmt.Fprintf(&b, "%s %s %s", r.Coll, limit, r.Method)
		if !r.plain() {
			fmt.Fprintf(&b, " %s %d", cmp.Or(r.Proto, "simple"), max(r.Channels, 1))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Hash is equal for equal tables.
func (t Table) Hash() uint64 {
	h := fnv.New64a()
	h.Write([]byte(t.String())) // never fails, says package hash
	return h.Sum64()
}

// Parse reads the text form. Empty lines and what follows # are skipped.
func Parse(text string) (Table, error) {
	var t Table
	for k, line := range strings.Split(text, "\n") {
		words := strings.Fields(strings.SplitN(line, "#", 2)[0])
		if len(words) == 0 {
			continue
		}
		fail := func(format string, args ...any) (Table, error) {
			return nil, fmt.Errorf("tuning table line %d %q: %w", k+1, line, fmt.Errorf(format, args...))
		}
		if len(words) != 3 && len(words) != 5 {
			return fail("%d words, want collective, bytes and method, or protocol and channels besides", len(words))
		}
		c, err := plan.ParseColl(words[0])
		if err != nil {
			return fail("%w", err)
		}
		limit := int64(NoLimit)
		if words[1] != "*" {
			if limit, err = strconv.ParseInt(words[1], 10, 64); err != nil || limit < 0 {
				return fail("%q is no size in bytes and not *", words[1])
			}
		}
		if !slices.Contains(planner.Methods(c), words[2]) {
			return fail("%s has no method %q, only %v", c, words[2], planner.Methods(c))
		}
		r := Row{Coll: c, MaxBytes: limit, Method: words[2]}
		if len(words) == 5 {
			if r.Proto = words[3]; !slices.Contains(protocols, r.Proto) {
				return fail("no protocol %q, only %v", words[3], protocols)
			}
			if r.Channels, err = strconv.Atoi(words[4]); err != nil || r.Channels < 1 || r.Channels > maxChannels {
				return fail("%q is no number of channels in 1 … %d", words[4], maxChannels)
			}
			if r.plain() {
				r.Proto, r.Channels = "", 0
			}
		}
		t = append(t, r)
	}
	return t, t.check()
}

// check sees to it that every row can be reached and every size of a named collective has a method.
func (t Table) check() error {
	last := map[plan.Coll]int64{}
	for _, r := range t {
		if before, ok := last[r.Coll]; ok && r.MaxBytes <= before {
			return fmt.Errorf("tuning table: the row %s %d %s is never used: a row before it goes to %d", r.Coll, r.MaxBytes, r.Method, before)
		}
		last[r.Coll] = r.MaxBytes
	}
	for c := range plan.NumColls {
		if limit, ok := last[c]; ok && limit != NoLimit {
			return fmt.Errorf("tuning table: %s has no method above %d bytes: end it with a row \"%s * method\"", c, limit, c)
		}
	}
	return nil
}
