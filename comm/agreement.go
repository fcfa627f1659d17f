package comm

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/gccl/gccl/topo"
)

// verdict is what a rank says of its own decision about channels.
type verdict struct {
	Trouble string                // why it has none
	Order   string                // which order of its user cannot be obeyed
	Hash    string                // of the channels of its host
	Terms   map[string]topo.Terms // by graph: what the hosts must have alike
}

func (m *machine) verdict() verdict {
	v := verdict{Hash: fmt.Sprintf("%x", sha256.Sum256([]byte(m.channels))), Terms: map[string]topo.Terms{}}
	for name, g := range m.graphs() {
		v.Terms[name] = (*g).Terms()
	}
	return v
}

// graphs are the graphs that there are.
func (m *machine) graphs() map[string]**topo.Graph {
	out := map[string]**topo.Graph{"ring": &m.found.Ring, "tree": &m.found.Tree, "nvls": &m.found.NVLS}
	for name, g := range out {
		if *g == nil {
			delete(out, name)
		}
	}
	return out
}

func (c *Comm) exchangeVerdicts(ctx context.Context, tag string, mine verdict) ([]verdict, error) {
	b, err := json.Marshal(mine)
	if err != nil { // a bandwidth that is no number
		b, _ = json.Marshal(verdict{Trouble: err.Error()})
	}
	all, err := c.group.AllGatherTag(ctx, tag, b)
	if err != nil {
		return nil, err
	}
	out := make([]verdict, len(all))
	for r, b := range all {
		if err := json.Unmarshal(b, &out[r]); err != nil {
			out[r] = verdict{Trouble: fmt.Sprintf("%s sent a verdict that is not understood: %v", c.who(r), err)}
		}
	}
	return out, nil
}

// disagree says why the ranks have no common decision, or nothing. All ranks of a host must have the same channels.
func disagree(views []view, all []verdict) string {
	for r, v := range all {
		if v.Trouble != "" {
			if r > 0 || len(all) > 1 && all[1].Trouble != v.Trouble {
				return fmt.Sprintf("rank %d: %s", r, v.Trouble)
			}
			return v.Trouble
		}
	}
	first := map[string]int{}
	for r, v := range all {
		q, known := first[views[r].Host]
		if !known {
			first[views[r].Host] = r
		} else if all[q].Hash != v.Hash {
			return fmt.Sprintf("rank %d and rank %d of one host have found different channels; settings that matter to the search may differ", q, r)
		}
	}
	return ""
}

// under is the decision with as many channels, and as slow, as the least of the hosts has. A graph that a host lacks is nobody's.
func (m *machine) under(views []view, all []verdict) *machine {
	hosts := map[string]bool{}
	var one []verdict // of each host
	for r, v := range views {
		if !hosts[v.Host] {
			hosts[v.Host] = true
			one = append(one, all[r])
		}
	}
	if len(one) == 1 {
		return m
	}
	found := *m.found
	out := *m
	out.found = &found
	for name, g := range out.graphs() {
		var terms []topo.Terms
		for _, v := range one {
			if t, ok := v.Terms[name]; ok {
				terms = append(terms, t)
			}
		}
		if len(terms) < len(one) {
			*g = nil
			continue
		}
		*g = (*g).Under(topo.Agree(terms))
	}
	out.channels = channelsText(out.found)
	return &out
}
