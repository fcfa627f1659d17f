package main

import (
	"fmt"
	"hash/fnv"
	stdnet "net"
	"os"
	"strconv"
	"strings"
)

// world is this process's place among the processes that a launcher started.
type world struct {
	launcher   string
	rank, size int
	addrs      []string // where rank 0 listens: the first of these that is free
	token      string   // the same in all processes of one job, to tell jobs apart
}

// candidatePorts is how many ports rank 0 may try where the launcher gives none.
const candidatePorts = 8

// detectWorld reads what mpirun (Open MPI, MPICH), torchrun and srun set. nil: no launcher, or one that
// started a single process. parent is the parent's process id: on one machine all processes of a job have the same.
func detectWorld(getenv func(string) string, parent int) (*world, error) {
	for _, known := range []struct{ launcher, rank, size, localSize string }{
		{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
		{"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
		{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"},
		{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", ""},
	} {
		if getenv(known.rank) == "" || getenv(known.size) == "" {
			continue
		}
		w := &world{launcher: known.launcher}
		var err error
		if w.rank, err = envInt(getenv, known.rank); err != nil {
			return nil, err
		}
		if w.size, err = envInt(getenv, known.size); err != nil {
			return nil, err
		}
		if w.rank >= w.size {
			return nil, fmt.Errorf("%s %d is not below %s %d", known.rank, w.rank, known.size, w.size)
		}
		if w.size <= 1 {
			return nil, nil
		}
		local := 0
		if known.localSize != "" && getenv(known.localSize) != "" {
			if local, err = envInt(getenv, known.localSize); err != nil {
				return nil, err
			}
		}
		return w, w.locate(getenv, local == w.size, parent)
	}
	return nil, nil
}

func envInt(getenv func(string) string, name string) (int, error) {
	v, err := strconv.Atoi(getenv(name))
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%s %q is no number", name, getenv(name))
	}
	return v, nil
}

// locate finds the address of rank 0: GCCL_PERF_ADDR, torchrun's MASTER_ADDR, Slurm's node list, or this machine.
func (w *world) locate(getenv func(string) string, sameMachine bool, parent int) error {
	job := firstOf(getenv, "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")
	if addr := getenv("GCCL_PERF_ADDR"); addr != "" {
		if _, _, err := stdnet.SplitHostPort(addr); err != nil {
			return fmt.Errorf("GCCL_PERF_ADDR %q is no host:port: %w", addr, err)
		}
		w.addrs, w.token = []string{addr}, job
		return nil
	}
	if host, port := getenv("MASTER_ADDR"), getenv("MASTER_PORT"); host != "" && port != "" {
		n, err := envInt(getenv, "MASTER_PORT")
		if err != nil || n < 1 || n > 65534 {
			return fmt.Errorf("MASTER_PORT %q is no port", port)
		}
		if getenv("TORCHELASTIC_USE_AGENT_STORE") == "True" {
			n++ // the agent's own store listens at MASTER_PORT (torch/distributed/elastic/agent/server/api.py, 2.11)
		}
		w.addrs, w.token = []string{stdnet.JoinHostPort(host, strconv.Itoa(n))}, job
		return nil
	}
	if nodes := firstOf(getenv, "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"); nodes != "" {
		host, err := firstNode(nodes)
		if err != nil {
			return err
		}
		step := getenv("SLURM_STEP_ID")
		w.addrs, w.token = addresses(host, job+"."+step), job+"."+step
		return nil
	}
	if sameMachine {
		w.token = fmt.Sprintf("%s/%d/%d", job, parent, os.Getuid())
		w.addrs = addresses("127.0.0.1", w.token)
		return nil
	}
	return fmt.Errorf("%s does not say where rank 0 runs; set GCCL_PERF_ADDR to host:port of the first machine on all ranks", w.launcher)
}

func firstOf(getenv func(string) string, names ...string) string {
	for _, n := range names {
		if v := getenv(n); v != "" {
			return v
		}
	}
	return ""
}

// addresses derives ports from what only this job's processes have in common. The range stays below Linux's
// default ephemeral ports (32768).
func addresses(host, token string) []string {
	h := fnv.New32a()
	h.Write([]byte(token))
	base := 20000 + int(h.Sum32()%12000)
	var list []string
	for i := range candidatePorts {
		list = append(list, stdnet.JoinHostPort(host, strconv.Itoa(base+i)))
	}
	return list
}

// firstNode is the first host of a Slurm node list: "n[003-007,12],x1" gives n003.
func firstNode(list string) (string, error) {
	head, rest, bracket := strings.Cut(list, "[")
	name, _, comma := strings.Cut(head, ",")
	if comma || !bracket {
		head, bracket = name, false
	}
	if bracket {
		inside, _, closed := strings.Cut(rest, "]")
		first, _, _ := strings.Cut(inside, ",")
		first, _, _ = strings.Cut(first, "-")
		if !closed || first == "" {
			return "", fmt.Errorf("node list %q is not understood; set GCCL_PERF_ADDR to host:port of the first machine", list)
		}
		head += first
	}
	if head == "" {
		return "", fmt.Errorf("node list %q has no host", list)
	}
	return head, nil
}
