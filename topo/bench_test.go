package topo

import (
	"testing"
)

func BenchmarkSearch(b *testing.B) {
	for _, c := range []struct {
		file  string
		nodes int
	}{
		{"hgx-b200-8gpu-container", 1}, {"aws-p5.48xl-32nic", 2}, {"ibm-vsi-h100-8gpu", 2}, {"oci-bm-gpu4", 4},
		{"rtx3090-8gpu-ib56", 1}, {"gb300-2tray-8gpu-mnnvl", 1}, {"gb300-2tray-8gpu-rank5-no-nvlink", 1}, {"rtx4090-4gpu-socket", 2},
	} {
		b.Run(c.file, func(b *testing.B) {
			for range b.N {
				s, o, err := loadSystem(b, c.file, c.nodes)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Search(s, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
