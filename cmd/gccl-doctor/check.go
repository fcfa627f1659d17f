package main

import "fmt"

// Verdicts of a check.
const (
	ok      = "ok"
	note    = "note"    // nothing is wrong, but somebody who looks for trouble wants to know
	unknown = "unknown" // it could not be found out, and why
	warn    = "warning" // slower or less than the machine can, or trouble for other software of the same job
	fail    = "failure" // something does not work
)

// finding is the outcome of one check.
type finding struct {
	Check   string   `json:"check"`
	Verdict string   `json:"verdict"`
	Found   string   `json:"found"`
	Remedy  string   `json:"remedy,omitempty"`
	Details []string `json:"details,omitempty"`
}

// check looks at one side of a machine. It changes nothing there.
type check struct {
	name string
	look func(m *machine) []finding
}

// checks, in the order in which they are printed.
var checks = []check{
	{"driver", checkDriver},
	{"nvml", checkNVML},
	{"libraries", checkLibraries},
	{"shared memory", checkShm},
	{"system calls", checkSystemCalls},
	{"limits", checkLimits},
	{"container", checkContainer},
	{"ptrace", checkPtrace},
	{"acs", checkACS},
	{"iommu", checkIOMMU},
	{"gpudirect", checkGPUDirect},
	{"rdma", checkRDMA},
	{"interfaces", checkInterfaces},
	{"firewall", checkFirewall},
	{"mps", checkMPS},
	{"cpus", checkCPUs},
	{"settings", checkSettings},
}

// examine runs all checks.
func examine(m *machine) []finding {
	var out []finding
	for _, c := range checks {
		for _, f := range c.look(m) {
			f.Check = c.name
			out = append(out, f)
		}
	}
	return out
}

// one is a check's only finding.
func one(verdict, format string, args ...any) []finding {
	return []finding{{Verdict: verdict, Found: fmt.Sprintf(format, args...)}}
}

// with adds a remedy to the last finding.
func with(f []finding, remedy string) []finding {
	f[len(f)-1].Remedy = remedy
	return f
}

func count(list []finding, verdict string) int {
	n := 0
	for _, f := range list {
		if f.Verdict == verdict {
			n++
		}
	}
	return n
}

func plural(n int, what string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
