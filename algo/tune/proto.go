package tune

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gccl/gccl/algo/plan"
)

// protocols are NCCL's (NCCL 2.30 user guide, NCCL_PROTO).
var protocols = []string{"simple", "ll", "ll128"}

// maxChannels is NCCL's (MAXCHANNELS, 2.30).
const maxChannels = 64

// protoWish is the protocols asked for, by collective; any is for those that are not named. nil: no wish.
type protoWish struct {
	any    []string
	byColl map[plan.Coll][]string
}

// parseProto reads a list as NCCL_PROTO has it: the syntax of NCCL_ALGO with names of protocols.
func parseProto(text string) (*protoWish, error) {
	w := &protoWish{byColl: map[plan.Coll][]string{}}
	err := clauses(text, "protocol", func(c plan.Coll, named bool, list string) error {
		rest, not := strings.CutPrefix(list, "^")
		var allowed []string
		for _, name := range strings.Split(rest, ",") {
			if name = strings.TrimSpace(name); !slices.Contains(protocols, name) {
				return fmt.Errorf("protocol list %q: no protocol %q; there are %v", text, name, protocols)
			}
			allowed = append(allowed, name)
		}
		if not {
			asked := allowed
			allowed = slices.DeleteFunc(slices.Clone(protocols), func(p string) bool { return slices.Contains(asked, p) })
		}
		if named {
			w.byColl[c] = allowed
		} else {
			w.any = allowed
		}
		return nil
	})
	return w, err
}

// of is what a collective may use.
func (w *protoWish) of(c plan.Coll) []string {
	if p, ok := w.byColl[c]; ok {
		return p
	}
	return w.any
}

// clauses takes a list apart: lists separated by semicolons, each for all collectives, or for one whose name and a colon stand
// before it. Case does not matter.
func clauses(text, what string, each func(c plan.Coll, named bool, list string) error) error {
	for _, clause := range strings.Split(text, ";") {
		clause = strings.ToLower(strings.TrimSpace(clause))
		if clause == "" {
			continue
		}
		name, list, named := strings.Cut(clause, ":")
		var c plan.Coll
		if !named {
			list = clause
		} else {
			var err error
			if c, err = plan.ParseColl(strings.TrimSpace(name)); err != nil {
				return fmt.Errorf("%s list %q: %w", what, text, err)
			}
		}
		if err := each(c, named, strings.TrimSpace(list)); err != nil {
			return err
		}
	}
	return nil
}
