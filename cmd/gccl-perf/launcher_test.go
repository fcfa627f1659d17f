package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestDetectWorld(t *testing.T) {
	for _, tt := range []struct{ name, env, want string }{
		{"none", "", "<nil>"},
		{"one process", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", "<nil>"},
		{"torchrun", "RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=29500 TORCHELASTIC_RUN_ID=j", "torchrun 1/4 [a:29500] j"},
		{"torchrun with its own store", "RANK=1 WORLD_SIZE=4 MASTER_ADDR=::1 MASTER_PORT=29500 TORCHELASTIC_USE_AGENT_STORE=True", "torchrun 1/4 [[::1]:29501] "},
		{"address given", "PMI_RANK=0 PMI_SIZE=2 GCCL_PERF_ADDR=h:77", "MPICH 0/2 [h:77] "},
		{"Open MPI before torchrun's names", "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 RANK=0 WORLD_SIZE=9 GCCL_PERF_ADDR=h:77", "Open MPI 2/3 [h:77] "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := detectWorld(lookup(tt.env), 7)
			if err != nil {
				t.Fatal(err)
			}
			got := "<nil>"
			if w != nil {
				got = fmt.Sprintf("%s %d/%d %v %s", w.launcher, w.rank, w.size, w.addrs, w.token)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func lookup(env string) func(string) string {
	m := map[string]string{}
	for _, kv := range strings.Fields(env) {
		k, v, _ := strings.Cut(kv, "=")
		m[k] = v
	}
	return func(name string) string { return m[name] }
}

func TestDetectWorldSharesAnAddress(t *testing.T) {
	of := func(env string, parent int) *world {
		w, err := detectWorld(lookup(env), parent)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	a := of("PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=2", 7)
	b := of("PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=2", 7)
	other := of("PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=2", 8)
	if fmt.Sprint(a.addrs) != fmt.Sprint(b.addrs) || a.token != b.token {
		t.Errorf("one job, two places: %v %v", a, b)
	}
	if a.token == other.token {
		t.Error("two jobs, one token")
	}
	s := of("SLURM_PROCID=3 SLURM_NTASKS=8 SLURM_JOB_ID=5 SLURM_STEP_ID=1 SLURM_STEP_NODELIST=n[3-4]", 1)
	if !strings.HasPrefix(s.addrs[0], "n3:") || s.token != "5.1" {
		t.Errorf("%+v", s)
	}
}

func TestDetectWorldRefuses(t *testing.T) {
	for _, tt := range []struct{ env, want string }{
		{"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2", "set GCCL_PERF_ADDR"},
		{"RANK=x WORLD_SIZE=2", "is no number"},
		{"RANK=2 WORLD_SIZE=2", "is not below"},
		{"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=0", "is no port"},
		{"RANK=0 WORLD_SIZE=2 GCCL_PERF_ADDR=justhost", "is no host:port"},
	} {
		_, err := detectWorld(lookup(tt.env), 1)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.env, err, tt.want)
		}
	}
}

func TestFirstNode(t *testing.T) {
	for list, want := range map[string]string{"n1": "n1", "n1,n2": "n1", "n[003-007,12],x1": "n003", "a,b[1-2]": "a", "gpu-[7]": "gpu-7"} {
		if got, err := firstNode(list); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", list, got, err, want)
		}
	}
	for _, list := range []string{"", "n[", "n[]", "n[1"} {
		if got, err := firstNode(list); err == nil {
			t.Errorf("%q gave %q", list, got)
		}
	}
}

func FuzzFirstNode(f *testing.F) {
	for _, s := range []string{"n[1-2]", "a,b", "[", "]["} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		if got, err := firstNode(list); err == nil && (got == "" || strings.Contains(got, ",")) {
			t.Errorf("%q gave %q", list, got)
		}
	})
}
