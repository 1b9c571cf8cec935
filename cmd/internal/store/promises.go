package store

import (
	"context"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/seam"
)

// divided is a workspace whose parts make different promises.
type divided interface {
	promises() ([]promised, error)
}

// promised is the promises of a part; at is "" for the root.
type promised struct {
	at  string
	has seam.Capabilities
}

// checkPromises refuses a workspace if any part lacks a required promise.
func checkPromises(name string, b divided, required seam.Capabilities) error {
	if required == (seam.Capabilities{}) {
		return nil
	}
	list, err := b.promises()
	if err != nil {
		return err
	}
	for _, p := range list {
		missing := p.has.Missing(required)
		if len(missing) == 0 {
			continue
		}
		if p.at != "" {
			name = "of " + name + " the part at /" + p.at
		}
		return exit.New(exit.Failed, "%s does not promise %s", name, strings.Join(missing, ", ")).
			Hint("require less, or use a workspace that promises it")
	}
	return nil
}

// promises returns the promises of each part that exists.
func (p *parts) promises() (list []promised, err error) {
	for _, one := range p.all {
		if one.absent {
			continue
		}
		has, err := one.promises()
		if err != nil {
			return nil, err
		}
		list = append(list, promised{one.at.Key(), has})
	}
	return list, nil
}

func (p *part) promises() (seam.Capabilities, error) {
	if p.has != nil {
		return *p.has, nil
	}
	b, err := p.opened()
	if err != nil {
		return seam.Capabilities{}, err
	}
	return b.Capabilities(), nil
}

// promises returns the promises of the part that contains the place, and of each part below it.
func (m *mounted) promises() (list []promised, err error) {
	at, _ := m.at(m.dir) // which is known to be in the mount
	for _, p := range m.parts.within(at) {
		list = append(list, promised{strings.Trim(p.At, "/"), m.promisesOf(p)})
	}
	return list, nil
}

// copyPromises are the promises of a working copy of a store. Replication of the store covers
// the changes once they are sent. If changes are sent later than they were written, other
// processes may overwrite them meanwhile. The content lies unencrypted on local disks, and a
// conflict may leave copies in it.
func copyPromises(provider string, later bool) (c seam.Capabilities) {
	if d, known := all.Registry().Get(provider); known {
		c = seam.PromisesOf(d.Promises)
	}
	c.Encryption, c.ConflictFiles = false, true
	c.ConcurrentWriters = c.ConcurrentWriters && !later
	return c
}

// gathered returns, without opening it, the promises of a part whose changes are gathered into
// commits; nil for other parts.
func gathered(s daemon.Source) *seam.Capabilities {
	if s.Mode != string(mountspec.ModePullPush) {
		return nil
	}
	c := copyPromises(s.Provider, true)
	return &c
}

// Promises returns the promises that the verbs find for a part of a workspace that is not mounted.
func Promises(ctx context.Context, tree *daemon.Tree, s daemon.Source) (seam.Capabilities, error) {
	if c := gathered(s); c != nil {
		return *c, nil
	}
	if !s.Cached {
		return seam.Capabilities{}, nil // a directory promises nothing, whether it exists or not
	}
	b, err := tree.Store(ctx, s)
	if err != nil {
		return seam.Capabilities{}, err
	}
	return b.Capabilities(), b.Close()
}
