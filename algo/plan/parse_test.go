package plan

import (
	"reflect"
	"strings"
	"testing"
)

const sample = `plan all_reduce ring ranks 4 rank 1 root 0 send_parts 4 recv_parts 4 split steps 1
edge 0 in peer 0 slots 2 index 0 ins 1
edge 1 out peer 2 slots 2 index 0 ins 1
signal step 1
wait step 1 all
wait step 1 rank 3-i%4
wait credit 1
reduce send@1[0] -> slot#1[0]~
loop 2
  reduce final slot#0[2]~ send@1[3-i+2j%4]*4 -> recv@0+j[0-3i]*4 slot#1[1]~
end
send_staged: copy send@1[0] -> stage@1[0]
`

func TestParse(t *testing.T) {
	p, err := Parse(sample)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.String(); got != sample {
		t.Errorf("got\n%s\nwant\n%s", got, sample)
	}
	if got, want := p.Ops[6].Src[1].Chunk, (Affine{Base: 3, I: -1, J: 2, Mod: 4}); got != want {
		t.Errorf("chunk %+v, want %+v", got, want)
	}
}

func TestParseErrors(t *testing.T) {
	head := sample[:strings.Index(sample, "\n")+1]
	for _, c := range []struct{ text, want string }{
		{"", "empty"},
		{"plan fly", "not one of"},
		{"plan reduce x ranks", "too short"},
		{head + "edge 1 in peer 0 slots 1 index 0 ins 1", "comes as edge 0"},
		{head + "jump", "no op"},
		{head + "never: end", "no condition"},
		{head + "end end", "too much"},
		{head + "copy send@1[0]", "too short"},
		{head + "copy send@1 -> recv@1[0]", "no reference"},
		{head + "copy mars@1[0] -> recv@1[0]", "no reference"},
		{head + "copy send@i[0] -> recv@1[0]", "no expression"},
		{head + "loop 99999999999", "32-bit"},
		{head + "signal flag 1", "not one of"},
	} {
		if _, err := Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.text, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("plan reduce x ranks 1 rank 0 root 0 send_parts 1 recv_parts 1 steps 0\nput send@0[0] -> recv@0[0]\nget -> \n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		q, err := Parse(p.String())
		if err != nil {
			t.Fatalf("%v in\n%s", err, p)
		}
		if !reflect.DeepEqual(p, q) {
			t.Fatalf("changed:\n%s\n%s", p, q)
		}
		_ = p.Check() // must not panic
	})
}
