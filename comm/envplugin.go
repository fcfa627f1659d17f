package comm

import (
	"sync"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/plugin/env"
)

// envPlugin is the process's env plugin. It is looked for before the first settings are read: the log's own may come from it.
var envPlugin struct {
	once sync.Once
	p    *env.Plugin
	err  error
}

// LoadSettings reads the settings, through the env plugin if there is one. A plugin that cannot be started is an error each time.
func LoadSettings() (*param.Settings, []param.Warning, error) {
	envPlugin.once.Do(func() {
		plain, _, _ := param.Load() // mistakes in it are told when it is read for good
		envPlugin.p, envPlugin.err = env.Open(plain, [3]int{APIVersion / 10000, APIVersion / 100 % 100, APIVersion % 100}, nil)
		if envPlugin.p != nil {
			param.SetSource(envPlugin.p.Get)
		}
	})
	s, w, err := param.Load()
	if err == nil {
		err = envPlugin.err
	}
	return s, w, err
}

// EnvPlugin names the env plugin; empty without one.
func EnvPlugin() string {
	if envPlugin.p == nil {
		return ""
	}
	return envPlugin.p.String()
}

// endEnvPlugin ends it. Settings come from the environment then.
func endEnvPlugin() {
	if envPlugin.p != nil && param.SetSource(nil) {
		envPlugin.p.Close()
	}
}
