package rankrun

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program is a built C program.
type Program struct {
	Path   string
	LibDir string
	dir    string
}

// Root is the repository's folder, found upwards from the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod in this folder or above")
		}
		dir = up
	}
}

// LibDir is the folder of the built library.
func LibDir() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir := os.Getenv("GCCL_LIB_DIR")
	if dir == "" {
		dir = filepath.Join(root, "build", "lib")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	for _, f := range []string{"libgccl.so", "libgccl_core.so", "libnccl.so"} {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			return "", fmt.Errorf("the library is not built: %w; run make build, or set GCCL_LIB_DIR", err)
		}
	}
	return dir, nil
}

// Build compiles all C files of the folders (relative to the repository) and of tests/internal/chost into one program
// that links the library as a user's program does: gcc, the public header, -lnccl.
func Build(name string, folders ...string) (*Program, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	lib, err := LibDir()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "gccl-"+name+"-")
	if err != nil {
		return nil, err
	}
	p := &Program{Path: filepath.Join(dir, name), LibDir: lib, dir: dir}
	cc := os.Getenv("GCCL_TEST_CC")
	if cc == "" {
		cc = "gcc"
	}
	args := []string{"-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-pthread",
		"-I" + filepath.Join(root, "include")}
	args = append(args, strings.Fields(os.Getenv("GCCL_TEST_CFLAGS"))...)
	for _, f := range append(folders, "tests/internal/chost") {
		abs := filepath.Join(root, f)
		args = append(args, "-I"+abs)
		sources, err := filepath.Glob(filepath.Join(abs, "*.[ch]"))
		if err != nil || len(sources) == 0 {
			p.Close()
			return nil, fmt.Errorf("no C files in %s (%v)", f, err)
		}
		for _, s := range sources {
			// The compiler's reads are invisible to the test cache; this look makes a changed source run again.
			if _, err := os.Stat(s); err != nil {
				p.Close()
				return nil, err
			}
			if strings.HasSuffix(s, ".c") {
				args = append(args, s)
			}
		}
	}
	args = append(args, "-o", p.Path, "-L"+lib, "-lnccl", "-lm", "-ldl", "-Wl,-rpath,"+lib)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		p.Close()
		return nil, fmt.Errorf("%s %s: %w\n%s", cc, strings.Join(args, " "), err, out)
	}
	return p, nil
}

// BuildCXX compiles the C++ files of one folder as a user of kernels on the CPU does: g++, C++14, -lgccl_cpu and -lnccl, with options
// added.
func BuildCXX(name, folder string, options ...string) (*Program, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	lib, err := LibDir()
	if err != nil {
		return nil, err
	}
	sources, err := filepath.Glob(filepath.Join(root, folder, "*.cc"))
	if err != nil || len(sources) == 0 {
		return nil, fmt.Errorf("no C++ files in %s (%v)", folder, err)
	}
	headers, _ := filepath.Glob(filepath.Join(root, folder, "*.h"))
	for _, s := range append(sources, headers...) { // as in Build: the test cache sees these looks only
		if _, err := os.Stat(s); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "gccl-"+name+"-")
	if err != nil {
		return nil, err
	}
	p := &Program{Path: filepath.Join(dir, name), LibDir: lib, dir: dir}
	args := []string{"-std=c++14", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-I" + filepath.Join(root, "include")}
	args = append(append(args, options...), sources...)
	args = append(args, "-o", p.Path, "-L"+lib, "-lgccl_cpu", "-lnccl", "-Wl,-rpath,"+lib)
	if out, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
		p.Close()
		return nil, fmt.Errorf("g++ %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return p, nil
}

// Close removes the program.
func (p *Program) Close() {
	if p != nil {
		os.RemoveAll(p.dir)
	}
}

// FakeDriver is the path of the stand-in for libcuda.so.1. Its folder has it under that name too, for LD_LIBRARY_PATH.
func FakeDriver() (string, error) {
	lib, err := LibDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(lib, "test", "libcuda_fake.so")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the stand-in for the CUDA driver is not built: %w; run make build", err)
	}
	return path, nil
}

// FakeCUDA is the environment in which a program finds that stand-in, and this library's kernels compiled for the CPU.
func FakeCUDA() ([]string, error) {
	driver, err := FakeDriver()
	if err != nil {
		return nil, err
	}
	folder := filepath.Dir(driver)
	kernels := filepath.Join(filepath.Dir(folder), "libgccl_kernels_cpu.so")
	if _, err := os.Stat(kernels); err != nil {
		return nil, fmt.Errorf("the kernels are not built for the CPU: %w; run make kernels-cpu", err)
	}
	return []string{"LD_LIBRARY_PATH=" + folder, "GCCL_CUDA_LIBRARY=" + driver, "GCCL_FAKE_KERNELS=" + kernels}, nil
}
