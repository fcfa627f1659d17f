package probe

import "testing"

// One ring full of small all-reduces: what the writer does with it at a time.
func BenchmarkWriter(b *testing.B) {
	var ring []Event
	for call := uint64(1); len(ring) < 16384; call++ {
		ns := call * 10000
		add := func(e Event) {
			e.NS, e.Comm, e.CallNumber = ns, 1, call
			ns += 100
			ring = append(ring, e)
		}
		add(Event{Kind: Call, What: coll, DType: 7, Count: 100})
		add(Event{Kind: Run, What: coll, DType: 7, Count: 100, Text: text("direct")})
		for k := range uint64(7) {
			add(Event{Kind: Step, What: uint8(3 * (k % 2)), Count: k, Peer: -1})
		}
		add(Event{Kind: Done, What: coll})
		add(Event{Kind: Called, What: coll})
	}
	w := newWriter()
	b.ReportAllocs()
	for b.Loop() {
		w.Add(500, ring)
		b.SetBytes(int64(len(w.Take())))
	}
}
