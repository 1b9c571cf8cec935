package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// registered is how many workspaces the host of registryWorkloads has.
const registered = 1000

// registryWorkloads are commands on a host that has registered many workspaces. What they
// cost is the processor time beyond that of a command that reads nothing.
func registryWorkloads() []workload {
	return []workload{
		{name: "resolve one of 1 000", unit: "ms", bar: bar{most: 10}, long: true, measure: amongMany("resolve", "@bench/w0500")},
		{name: "list 1 000", unit: "ms", bar: bar{most: 100}, long: true, measure: amongMany("list")},
	}
}

func amongMany(command ...string) measurement {
	return func(ctx context.Context, t *tree, _ workload) (float64, error) {
		if t.kind != wsmount {
			return absent, nil
		}
		m := manyRegistered{t.s, filepath.Join(t.s.home, "registered")}
		if err := m.register(ctx); err != nil {
			return 0, err
		}
		nothing, err := m.run(ctx, "version")
		if err != nil {
			return 0, err
		}
		spent, err := m.run(ctx, command...)
		return spent - nothing, err
	}
}

// manyRegistered is a host of its own.
type manyRegistered struct {
	s    *session
	home string
}

// run returns the processor time of a command in milliseconds.
func (m manyRegistered) run(ctx context.Context, args ...string) (float64, error) {
	c := m.s.command(ctx, append([]string{m.s.b.programs[wsmount]}, args...)...)
	c.Env = append(c.Env, "XDG_CONFIG_HOME="+m.home+"/config", "WSMOUNT_STATE_DIR="+m.home+"/state")
	out, err := c.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%v: %w: %s", args, err, out)
	}
	spent := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	return spent.Seconds() * 1000, nil
}

// register makes the workspaces and enters them, the first time that it is asked to.
func (m manyRegistered) register(ctx context.Context) error {
	if _, err := os.Stat(m.home + "/complete"); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i := range registered {
		dir := fmt.Sprintf("%s/workspaces/w%04d", m.home, i)
		if err := m.s.mkdir(m.home, m.home+"/workspaces", dir, dir+"/data"); err != nil {
			return err
		}
		text := fmt.Sprintf("---\nschema: workspace/v1\nid: \"@bench/w%04d\"\nversion: 1.0.0\nname: Workspace %d\ndescription: One of many that a host has registered.\n"+
			"owner: { type: user, id: bench, slug: bench }\nstorage:\n  inline:\n    provider: local-fs\n    config: { mount_path: ./data }\ntags: [ bench ]\n---\n\n## Description\n\nOne of many.\n", i, i)
		if err := os.WriteFile(dir+"/WORKSPACE.md", []byte(text), 0o644); err != nil {
			return err
		}
		if err := m.s.own(dir + "/WORKSPACE.md"); err != nil {
			return err
		}
		if _, err := m.run(ctx, "registry", "add", dir); err != nil {
			return err
		}
	}
	return os.WriteFile(m.home+"/complete", nil, 0o644)
}
