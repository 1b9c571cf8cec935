package seam

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wsmount/wsmount/providers"
)

// Space is one of the operator's own (T1 of seed 002), in which one directory is for memory.
type Space struct{ Dir, Memory string }

// ApartError says that Locators of a directory would lead to a space of the operator's own, or
// that this is not known. It is providers.ErrPermission.
type ApartError struct {
	What, Do string
	Err      error // why it is not known, or nil
}

// Error says which space.
func (e *ApartError) Error() string { return "seam: " + e.What }

// Unwrap is providers.ErrPermission, and the cause.
func (e *ApartError) Unwrap() []error {
	if e.Err == nil {
		return []error{providers.ErrPermission}
	}
	return []error{providers.ErrPermission, e.Err}
}

// CheckApart is an ApartError where a Locator of a backend over dir would lead to a space of the
// operator's own: one lies in dir, or dir lies in one and not in the directory there that is for
// memory. Of several around dir the innermost counts. It goes by what directories are, and not by
// their names.
func (s Settings) CheckApart(dir string) error {
	if s.Personal == nil {
		return nil
	}
	spaces, err := s.Personal()
	if err == nil {
		if _, err = os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			err = nil // so nothing of it can be reached, or it is made where its parents are
		}
	}
	if err != nil {
		return &ApartError{What: fmt.Sprintf("%s may lead to the operator's own space, which is not known: %v", dir, err), Do: "let the host configuration be read", Err: err}
	}
	around, near := Space{}, -1
	for _, space := range spaces {
		if above(space.Dir, dir) >= 0 {
			return &ApartError{What: fmt.Sprintf("%s has the operator's own space in it: %s (allow_personal of the host configuration)", dir, space.Dir),
				Do: "use the directory below the space that is for memory"}
		}
		if up := above(dir, space.Dir); up >= 0 && (near < 0 || up < near) {
			around, near = space, up
		}
	}
	if near < 0 || above(dir, around.Memory) >= 0 {
		return nil
	}
	return &ApartError{What: fmt.Sprintf("%s lies in the operator's own space %s, of which %s alone is for memory (allow_personal of the host configuration)", dir, around.Dir, around.Memory),
		Do: "use that directory, or name the one that is meant as its memory there"}
}

// above is how many steps above a directory another lies, 0 if it is that; -1 if it does not. Links
// are followed, and a directory that is mounted a second time is the same.
func above(dir, other string) int {
	is, err := os.Stat(other)
	if err != nil {
		return -1
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for steps := 0; ; steps++ {
		if at, err := os.Stat(dir); err == nil && os.SameFile(at, is) {
			return steps
		}
		if dir == filepath.Dir(dir) {
			return -1
		}
		dir = filepath.Dir(dir)
	}
}
