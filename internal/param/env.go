package param

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Env is where settings are read from.
type Env interface {
	// Environ returns NAME=VALUE strings: the variables of the process.
	Environ() []string
	// ReadFile returns a configuration file; the error satisfies
	// errors.Is(err, fs.ErrNotExist) if there is none.
	ReadFile(path string) ([]byte, error)
}

// Process returns the environment of this process as C sees it at the moment of
// each reading.
func Process() Env { return process{} }

type process struct{}

func (process) Environ() []string { return environ() }

// maxConfFile bounds what is read of a configuration file. A guess: real ones
// have a few dozen lines.
const maxConfFile = 1 << 20

// ReadFile reads regular files only: opening a named pipe would wait for its
// writer, so the file is opened without waiting and then looked at.
func (process) ReadFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfFile+1))
	if err == nil && len(data) > maxConfFile {
		return nil, fmt.Errorf("longer than %d bytes", maxConfFile)
	}
	return data, err
}

// MapEnv is an Env for tests: variables and files in maps.
type MapEnv struct {
	Vars  map[string]string
	Files map[string]string
}

// Environ implements Env.
func (m MapEnv) Environ() []string {
	var out []string
	for k, v := range m.Vars {
		out = append(out, k+"="+v)
	}
	return out
}

// ReadFile implements Env.
func (m MapEnv) ReadFile(path string) ([]byte, error) {
	data, ok := m.Files[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(data), nil
}

var _, _ Env = process{}, MapEnv{}
