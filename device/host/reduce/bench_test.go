package reduce

import (
	"fmt"
	"math/rand"
	"testing"
)

// sizes from a single word to memory that no cache holds.
var benchSizes = []struct {
	name  string
	bytes int
}{{"8B", 8}, {"4KiB", 4 << 10}, {"256KiB", 256 << 10}, {"16MiB", 16 << 20}}

// report gives GB/s of all memory read and written.
func report(b *testing.B, moved int) {
	b.ReportMetric(float64(moved)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
}

// BenchmarkSum sums two sources into two destinations (2x2) or one (2x1). The loop runs in C.
func BenchmarkSum(b *testing.B) {
	for _, dt := range []struct {
		name string
		Dtype
	}{{"fp32", Float32}, {"bf16", Bfloat16}, {"fp16", Float16}} {
		for _, isa := range Available() {
			for _, s := range benchSizes {
				for _, ndst := range []int{1, 2} {
					for _, stream := range []bool{false, true} {
						if stream && s.bytes < 1<<20 {
							continue
						}
						b.Run(fmt.Sprintf("%s/%s/%s/2x%d/stream=%v", dt.name, isa, s.name, ndst, stream), func(b *testing.B) {
							src, dst := benchBuffers(dt.Dtype, s.bytes, 2, ndst, stream)
							b.ResetTimer()
							if err := Repeat(isa, b.N, dt.Dtype, Sum, dst, src, s.bytes/dt.Size(), 0); err != nil {
								b.Fatal(err)
							}
							report(b, (2+ndst)*s.bytes)
						})
					}
				}
			}
		}
	}
}

// BenchmarkMany sums many sources into one destination.
func BenchmarkMany(b *testing.B) {
	for _, dt := range []struct {
		name string
		Dtype
	}{{"fp32", Float32}, {"bf16", Bfloat16}} {
		for _, nsrc := range []int{3, 4, 8, 16, 64} {
			for _, bytes := range []int{8, 4 << 10, 256 << 10, 4 << 20} {
				b.Run(fmt.Sprintf("%s/%dx1/%d", dt.name, nsrc, bytes), func(b *testing.B) {
					src, dst := benchBuffers(dt.Dtype, bytes, nsrc, 1, false)
					b.ResetTimer()
					if err := Repeat(Best(), b.N, dt.Dtype, Sum, dst, src, bytes/dt.Size(), 0); err != nil {
						b.Fatal(err)
					}
					report(b, (nsrc+1)*bytes)
				})
			}
		}
	}
}

// BenchmarkCopy compares the streaming copy with memcpy (stream=false).
func BenchmarkCopy(b *testing.B) {
	for _, s := range benchSizes {
		for _, stream := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/stream=%v", s.name, stream), func(b *testing.B) {
				src, dst := benchBuffers(Uint8, s.bytes, 1, 1, false)
				b.ResetTimer()
				if err := Copy(Best(), b.N, dst[0].Data, src[0].Data, stream); err != nil {
					b.Fatal(err)
				}
				report(b, 2*s.bytes)
			})
		}
	}
}

func benchBuffers(dt Dtype, bytes, nsrc, ndst int, stream bool) (src []Source, dst []Dest) {
	r := rand.New(rand.NewSource(1))
	for range nsrc {
		data := make([]byte, bytes)
		for i := range bytes / dt.Size() {
			if isInt(dt) {
				putInt(dt, data, i, r.Uint64())
			} else {
				putFloat(dt, false, data, i, r.Float64())
			}
		}
		src = append(src, Source{Data: data})
	}
	for range ndst {
		dst = append(dst, Dest{Data: make([]byte, bytes), Stream: stream})
	}
	return src, dst
}
