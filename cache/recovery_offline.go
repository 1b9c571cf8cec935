package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// nowhere is the backend of a working copy that is looked at without one. It
// promises everything, so that no difference is taken for none.
type nowhere struct{}

var _ providers.Provider = nowhere{}

func (nowhere) Capabilities() providers.Capabilities {
	return providers.Capabilities{Writable: true, ListComplete: true, EmptyDirs: true, Symlinks: true,
		Attributes: providers.AttrMode | providers.AttrOwner | providers.AttrModTime | providers.AttrXattrs}
}

func (nowhere) fail(method providers.Method, l providers.Locator) error {
	return &providers.Error{Op: method, Locator: l, Kind: providers.ErrUnavailable}
}

func (n nowhere) Stat(_ context.Context, l providers.Locator) (providers.Info, error) {
	return providers.Info{}, n.fail(providers.MethodStat, l)
}

func (n nowhere) List(_ context.Context, l providers.Locator, _ providers.ListOptions) (providers.Page, error) {
	return providers.Page{}, n.fail(providers.MethodList, l)
}

func (n nowhere) Read(_ context.Context, l providers.Locator, _ providers.ReadOptions) (providers.Content, error) {
	return providers.Content{}, n.fail(providers.MethodRead, l)
}

func (n nowhere) Write(_ context.Context, l providers.Locator, _ providers.Body, _ providers.WriteOptions) (providers.Info, error) {
	return providers.Info{}, n.fail(providers.MethodWrite, l)
}

func (n nowhere) Delete(_ context.Context, l providers.Locator, _ providers.DeleteOptions) error {
	return n.fail(providers.MethodDelete, l)
}

func (n nowhere) Mkdir(_ context.Context, l providers.Locator, _ providers.MkdirOptions) (providers.Info, error) {
	return providers.Info{}, n.fail(providers.MethodMkdir, l)
}

func (nowhere) Close() error { return nil }

// lookInto opens a state directory that is there, to be read: nothing is committed,
// so that the next start finds what it would have found. The content is opened
// too if with says so. ErrInUse when it is mounted, fs.ErrNotExist when there is
// none.
func lookInto(dir string, with bool) (*Volume, error) {
	return openAlone(dir, with, table.Options{ReadOnly: true})
}

// openAlone is lookInto with a table that may be written, if o says so.
func openAlone(dir string, with bool, to table.Options) (*Volume, error) {
	o := Options{StateDir: dir}
	o.setDefaults()
	if _, err := os.Stat(filepath.Join(dir, "names")); err != nil {
		if alone := contentAlone(dir); alone != nil {
			err = alone
		}
		return nil, fmt.Errorf("cache: %w", err)
	}
	s := &stateDir{dir: dir}
	err := s.take()
	if err == nil {
		err = s.openTable(to)
	}
	if to.ReadOnly && errors.Is(err, fs.ErrNotExist) { // none was made to its end: what there is may be damaged
		to.ReadOnly = false
		err = s.openTable(to)
	}
	if err == nil && with {
		s.content, err = content.Open(dir, content.Options{Ballast: -1, Floor: -1})
	}
	if err != nil {
		return nil, fmt.Errorf("cache: %w", errors.Join(err, s.close()))
	}
	return newVolume(nowhere{}, o, s), nil
}

// isState reports whether a directory holds a working copy.
func isState(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "lock"))
	return !errors.Is(err, fs.ErrNotExist)
}
