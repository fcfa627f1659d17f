// Package stubnic builds stand-ins for libibverbs and libmlx5 with a card that a thread executes: what a program finds whose LD_LIBRARY_PATH has their
// folder.
package stubnic

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gccl/gccl/tests/internal/rankrun"
)

// Build compiles both into a folder, with options added.
func Build(dir string, options ...string) error {
	root, err := rankrun.Root()
	if err != nil {
		return err
	}
	here := filepath.Join(root, "tests/internal/stubnic/lib")
	for _, l := range []struct{ so, src, version, more string }{
		{"libibverbs.so.1", "stub.c", "ibverbs.map", "-pthread"},
		{"libmlx5.so.1", "mlx5.c", "mlx5.map", filepath.Join(dir, "libibverbs.so.1")},
	} {
		args := strings.Fields("-std=gnu11 -O2 -g -Wall -Wextra -Werror -fPIC -fvisibility=hidden -shared")
		args = append(args, options...)
		args = append(args, "-Wl,-soname,"+l.so, "-Wl,--version-script="+filepath.Join(here, l.version), filepath.Join(here, l.src), "-o", filepath.Join(dir, l.so), l.more)
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("gcc %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}
