package seam

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/wsmount/wsmount/providers"
)

// Space is one of the operator's own (T1 of seed 002), with one directory for memory.
type Space struct{ Dir, Memory string }

// ApartError says that Locators of a directory would lead to a space of the operator's own, or
// that this cannot be known. It is providers.ErrPermission.
type ApartError struct {
	What, Do string
	Err      error // the reason if it cannot be known, or nil
}

// Error says which space.
func (e *ApartError) Error() string { return e.What }

// Unwrap is providers.ErrPermission, and the cause.
func (e *ApartError) Unwrap() []error {
	if e.Err == nil {
		return []error{providers.ErrPermission}
	}
	return []error{providers.ErrPermission, e.Err}
}

// CheckApart is an ApartError where a Locator of a backend over dir would lead to a space of the
// operator's own: one lies in dir, or dir lies in one outside of its directory for memory. Of
// several around dir the innermost counts. Directories are compared by identity, not by name; a
// mount on them shows other directories, which Settings.Behind tells.
func (s Settings) CheckApart(dir string) error {
	if s.Personal == nil {
		return nil
	}
	spaces, err := s.Personal()
	if err != nil {
		return unknown(dir, err)
	}
	if len(spaces) == 0 {
		return nil
	}
	dirs := []string{dir}
	for i := 0; i < len(dirs); i++ {
		name := dirs[i]
		if i > 0 {
			name = fmt.Sprintf("%s (which shows %s)", dir, dirs[i])
		}
		if err := checkApart(spaces, dirs[i], name); err != nil {
			return err
		}
		if s.Behind == nil {
			continue
		}
		more, err := s.Behind(dirs[i])
		if err != nil {
			return unknown(name, err)
		}
		for _, one := range more {
			if !slices.Contains(dirs, one) {
				dirs = append(dirs, one)
			}
		}
	}
	return nil
}

// checkHost is an ApartError where memory in dir would contain files that wsmount or agentm
// trust, or would lie in a place of wsmount's own.
func (s Settings) checkHost(dir string) error {
	places := slices.Clone(s.Config.Believed)
	if s.Host != nil {
		own, err := s.Host()
		if err != nil {
			return unknown(dir, err)
		}
		places = append(places, own...)
	}
	for _, place := range places {
		relation, up := "has in it", above(place, dir)
		switch {
		case up == 0:
			relation = "is"
		case up > 0:
		case above(dir, place) >= 0:
			relation = "lies in"
		default:
			continue
		}
		return &ApartError{What: fmt.Sprintf("%s %s %s, which this machine is ruled by: what is written there would change that", dir, relation, place),
			Do: "let memory have a directory of its own"}
	}
	return nil
}

func unknown(name string, err error) error {
	return &ApartError{What: fmt.Sprintf("%s may lead to the operator's own space, which is not known: %v", name, err),
		Do: "let the host configuration, and the directory, be read", Err: err}
}

// checkApart is CheckApart of one directory, whose name in messages is name.
func checkApart(spaces []Space, dir, name string) error {
	// A missing directory is made where its parents are, if it is ever reached.
	if _, err := os.Stat(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unknown(name, err)
	}
	around, near := Space{}, -1
	for _, space := range spaces {
		if above(space.Dir, dir) >= 0 {
			return &ApartError{What: fmt.Sprintf("%s has the operator's own space in it: %s (allow_personal of the host configuration)", name, space.Dir),
				Do: "use the directory below the space that is for memory"}
		}
		if up := above(dir, space.Dir); up >= 0 && (near < 0 || up < near) {
			around, near = space, up
		}
	}
	if near < 0 || above(dir, around.Memory) >= 0 {
		return nil
	}
	return &ApartError{What: fmt.Sprintf("%s lies in the operator's own space %s, of which %s alone is for memory (allow_personal of the host configuration)", name, around.Dir, around.Memory),
		Do: "use that directory, or name the one that is meant as its memory there"}
}

// above is the number of steps from dir up to another directory, 0 if it is that; -1 if the other
// is not above. Links are followed, and a directory that is mounted a second time is the same.
func above(dir, other string) int {
	is, err := os.Stat(other)
	if err != nil {
		return -1
	}
	for steps := 0; ; steps++ {
		if real, err := filepath.EvalSymlinks(dir); err == nil { // else it is missing
			dir = real
		}
		if at, err := os.Stat(dir); err == nil && os.SameFile(at, is) {
			return steps
		}
		if dir == filepath.Dir(dir) {
			return -1
		}
		dir = filepath.Dir(dir)
	}
}
