// Package clone is about the clone that the provider of a working copy keeps beside it, where
// commits are until they are pushed.
//
//	a, err := clone.Open(dir)
//	why := clone.Lost(dir)(report.Unpushed, report.StandsOn, true)
//
// It is for working copies that are not mounted, but for LostWhileMounted, and asks no store.
package clone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/all"
)

// ErrAtStore says that a provider keeps nothing locally: commits are made at its store.
var ErrAtStore = errors.New("commits are at the store alone")

// Open opens the clone of the working copy in a directory: ErrAtStore if its provider keeps none,
// and io/fs.ErrNotExist if it does not exist.
func Open(dir string) (providers.Archive, error) { return open(dir, false) }

// open is Open; held: the caller has the working copy mounted.
func open(dir string, held bool) (providers.Archive, error) {
	d := driverOf(dir)
	if d.Archive == nil {
		return nil, ErrAtStore
	}
	return d.Archive(context.Background(), providers.Settings{StateDir: PathOf(dir), Held: held})
}

// driverOf is that of the storage of a working copy; the zero one where it is not known.
func driverOf(dir string) providers.Driver {
	_, provider := state.StorageOf(dir)
	d, _ := all.Registry().Get(cmp.Or(provider, mountspec.ProviderGitHub)) // that was not always noted
	return d
}

// IsKept reports whether the provider of the working copy in a directory keeps a clone, existing
// or not.
func IsKept(dir string) bool { return driverOf(dir).Archive != nil }

// PathOf is where the clone of the working copy in a directory is, if it has one.
func PathOf(dir string) string { return filepath.Join(dir, state.CloneName) }

// Unpushed are the branches of the clone with commits that are not pushed, checked against the
// working copy's notes of them: a branch that was put back lacks commits without a sign of it in
// the clone, and the working copy stands on one of them. The errors are those of Open, and why the
// clone cannot be read.
func Unpushed(dir string, noted *cache.Unpushed, standsOn providers.Revision) (all []providers.UnpushedBranch, err error) {
	a, err := Open(dir)
	if err != nil {
		return nil, err
	}
	all, err = unpushed(a, noted, standsOn)
	return all, errors.Join(err, a.Close())
}

func unpushed(a providers.Archive, noted *cache.Unpushed, standsOn providers.Revision) ([]providers.UnpushedBranch, error) {
	all, err := a.Unpushed(context.Background())
	if err != nil || noted == nil || standsOn == "" {
		return all, err
	}
	has, err := a.Has(standsOn)
	if err == nil && !has {
		err = fmt.Errorf("no branch of it has commit %.12s, on which the working copy stands: %w", standsOn, providers.ErrCorrupt)
	}
	return all, err
}

// Verify is why the commits of the clone that are not pushed cannot be read with all that they have;
// nil: they can. The errors are those of Open besides.
func Verify(dir string) error {
	a, err := Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(verify(a), a.Close())
}

func verify(a providers.Archive) error {
	bundle, err := a.Bundle(context.Background())
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, bundle)
	return errors.Join(err, bundle.Close())
}

// Lost asks for commits that the working copy in a directory has noted as not pushed and that
// cannot be read in its clone: the working copy's files of them may be the last there are.
func Lost(dir string) cache.Lost {
	return func(noted *cache.Unpushed, standsOn providers.Revision, whole bool) error {
		return lost(dir, false, noted, standsOn, whole)
	}
}

// LostWhileMounted is Lost for a caller that has the working copy mounted: it is about the clone as
// the next mount would find it, whichever files this one has open.
func LostWhileMounted(dir string) cache.Lost {
	return func(noted *cache.Unpushed, standsOn providers.Revision, whole bool) error {
		if lost(dir, true, noted, standsOn, whole) == nil {
			return nil
		}
		return lost(dir, true, noted, standsOn, whole) // the mount may just have packed the objects
	}
}

func lost(dir string, held bool, noted *cache.Unpushed, standsOn providers.Revision, whole bool) error {
	a, err := open(dir, held)
	if err == nil {
		var all []providers.UnpushedBranch
		if all, err = unpushed(a, noted, standsOn); whole && len(all) > 0 && err == nil {
			err = verify(a)
		}
		err = errors.Join(err, a.Close())
	}
	if IsAllKnown(noted, standsOn, err) {
		return nil
	}
	return fmt.Errorf("the clone cannot be read: %w", err)
}

// IsAllKnown reports whether an error of Unpushed leaves nothing open: there was none, or no clone
// to look into, and all unpushed commits are noted. A clone that has lost its head, which is made
// anew, counts as none for a working copy that stands on a revision, and has noted none on top.
func IsAllKnown(noted *cache.Unpushed, standsOn providers.Revision, err error) bool {
	none := (noted == nil || noted.Commits == 0) && (standsOn != "" || !errors.Is(err, providers.ErrCorrupt))
	return err == nil || errors.Is(err, ErrAtStore) || errors.Is(err, fs.ErrNotExist) && none
}
