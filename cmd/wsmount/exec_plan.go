package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/sandbox"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
)

// Providers of AIP-36 that run commands on this host. Both get a stronger isolation than they ask for.
const localSandbox = "local"

var localSandboxes = []string{localSandbox, "node-permission"}

// planExec resolves the environment of a command, and refuses requests that cannot
// be met, before anything is mounted.
func planExec(c *cli.Context) (p *execPlan, closePlan func(), err error) {
	h, err := openHost(c, true)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	dir, err := os.Getwd()
	if err != nil {
		return nil, nil, exit.New(exit.Failed, "working directory: %w", err).Hint("change to a directory that exists")
	}
	req := daemon.Request{Dir: dir, Workspace: c.Args().First(), StateDir: c.String("state-dir"), Resolver: h.resolver,
		Trust: c.Bool("trust"), Create: true, Getenv: os.Getenv}
	p = &execPlan{}
	if p.tree, err = daemon.Resolve(c.Context, req); err != nil {
		return nil, nil, err
	}
	box, err := p.tree.Sandbox(c.Context)
	if err != nil {
		return nil, nil, err
	}
	p.spec = sandbox.Spec{Command: c.Args().Tail(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: sandbox.Interactive(os.Stdin, os.Stdout)}
	if err = p.fill(c, box, req); err != nil {
		return nil, nil, err
	}
	p.hide(h.config)
	if err = p.spec.Check(); err != nil {
		return nil, nil, err
	}
	return p, h.close, nil
}

func (p *execPlan) fill(c *cli.Context, box *host.Sandbox, req daemon.Request) error {
	b := box.Block
	if err := p.checkProvider(b, c.String("sandbox-provider")); err != nil {
		return err
	}
	if len(b.Egress) > 0 && !c.Bool("no-network") {
		return exit.New(exit.Denied, "%s asks for the network (%s), and this wsmount cannot hold a command to a list of hosts", b.Pos, oneLine(strings.Join(b.Egress, ", "))).
			Hint("give --no-network to run it without, or take network.egress out of the sandbox block")
	}
	if err := p.limits(c, b.TimeoutMS, b.CPUMS, b.MemoryMB); err != nil {
		return err
	}
	p.fillEnv(box)
	for _, m := range b.Mounts {
		em := execMount{at: m.At, readOnly: m.Mode == mountspec.MountReadOnly, tree: p.tree}
		if !m.Workspace {
			part := req
			part.SandboxMount, em.part = m.At, m.At
			var err error
			if em.tree, err = daemon.Resolve(c.Context, part); err != nil {
				return err
			}
		}
		p.mounts = append(p.mounts, em)
		p.spec.Mounts = append(p.spec.Mounts, sandbox.Mount{At: em.at, ReadOnly: em.readOnly})
	}
	shown := slices.ContainsFunc(b.Mounts, func(m mountspec.SandboxMount) bool { return m.Workspace })
	if !shown && c.String("turn") != "" {
		return exit.New(exit.Usage, "--turn is for a workspace that the command sees, and the sandbox block does not mount it").
			Hint("add { source: workspace, at: /workspace } to its mounts")
	}
	if len(b.Mounts) == 0 {
		p.note("the sandbox block mounts nothing, so that the command does not see the workspace")
	}
	return nil
}

// checkProvider refuses a provider that runs on another machine, and configuration
// that a local sandbox ignores.
func (p *execPlan) checkProvider(b *mountspec.Sandbox, instead string) error {
	switch {
	case instead != "" && instead != localSandbox:
		return exit.New(exit.Usage, "--sandbox-provider can be local only").Hint("leave it out, or give --sandbox-provider local")
	case instead == localSandbox:
		if len(b.Config) > 0 && !slices.Contains(localSandboxes, b.Provider) {
			p.note("the config of provider %s means nothing here", oneLine(b.Provider))
			return nil
		}
	case !slices.Contains(localSandboxes, b.Provider):
		return exit.New(exit.Unresolvable, "%s: sandbox provider %q is not built into this wsmount", b.Pos, oneLine(b.Provider)).
			Hint("give --sandbox-provider local to run the command on this host")
	}
	if keys := slices.Sorted(maps.Keys(b.Config)); len(keys) > 0 {
		return exit.New(exit.Manifest, "%s: config.%s of a %s sandbox is not understood", b.Pos, oneLine(keys[0]), b.Provider).
			Hint("leave config empty")
	}
	if b.PauseAfterIdle != "" {
		p.note("lifecycle.pause_after_idle means nothing here: a sandbox ends with its command")
	}
	return nil
}

// fillEnv passes on granted variables, and on a terminal $TERM, without which no editor runs.
func (p *execPlan) fillEnv(box *host.Sandbox) {
	if term := os.Getenv("TERM"); sandbox.IsTerminal(os.Stdout) && term != "" {
		p.spec.Env = append(p.spec.Env, [2]string{"TERM", term})
	}
	for _, v := range box.Env {
		p.spec.Env = append(p.spec.Env, [2]string{v.Name, v.Value.Reveal()})
	}
	for _, name := range box.Unset {
		p.note("%s is not set here, and is not passed on", name)
	}
}

// hide lists the paths that must not lie in directories that every sandbox sees.
func (p *execPlan) hide(cfg *host.Config) {
	hidden := []string{p.tree.StateRoot, cfg.Path, filepath.Dir(cfg.Path)}
	for _, m := range append(p.mounts, execMount{tree: p.tree}) {
		for _, s := range m.tree.Sources {
			hidden = append(hidden, s.Path)
		}
	}
	for _, path := range hidden {
		if path != "" && path != "." {
			p.spec.Hidden = append(p.spec.Hidden, host.Real(path))
		}
	}
}

// mountArgs is the command line that mounts an execMount.
func (m execMount) mountArgs(c *cli.Context, dir string) []string {
	args := []string{"mount", c.Args().First(), dir, fmt.Sprintf("--stop-timeout=%s", tiedStopTimeout)}
	for _, name := range []string{"config", "state-dir", "operator"} {
		if v := c.String(name); v != "" {
			args = append(args, "--"+name+"="+v)
		}
	}
	for _, name := range []string{"trust", "read-only"} {
		if c.Bool(name) {
			args = append(args, "--"+name)
		}
	}
	for _, spec := range c.StringSlice("mount") {
		args = append(args, "--mount="+spec)
	}
	if m.part != "" {
		args = append(args, "--sandbox-mount="+m.part)
	}
	return args
}
