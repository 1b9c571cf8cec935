// Package ondisk compares directories by where their bytes lie. It knows that a directory
// has more than one path where it, or one above or in it, is mounted a second time, and
// promises to tell two such paths as far as this process sees its mounts.
//
//	shared := ondisk.New().Overlap("/srv/notes", "/mnt/again")
package ondisk

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/mountspec/host/grant"
)

// A diskPlace is where a directory lies on its disk, however many paths lead
// there: a bind mount shows a part of a disk at a second path, where what is
// above it has other names and other numbers.
type diskPlace struct {
	disk string // major:minor
	path string // from the root of the disk
}

// overlaps says whether one lies in the other.
func (p diskPlace) overlaps(q diskPlace) bool {
	return p.disk == q.disk && grant.Overlaps(p.path, q.path)
}

// Disks are what was looked up of the directories and mounts of this machine for one
// comparison: many workspaces lie below the same directories, and on the same mount.
type Disks struct {
	ids    map[string]fileID
	places map[string]knownPlace
	mounts map[uint64]*mountinfo.Info
}

// A fileID is what a name leads to; zero: nothing that can be looked at.
type fileID struct{ dev, ino uint64 }

type knownPlace struct {
	diskPlace
	known bool
}

// New knows nothing yet.
func New() *Disks { return &Disks{ids: map[string]fileID{}, places: map[string]knownPlace{}} }

// Overlap reports whether a directory is another one or lies in it, or the other way
// round, whatever their paths are. Neither need be there.
func (d *Disks) Overlap(a, b string) bool {
	if d.liesIn(a, b) || d.liesIn(b, a) {
		return true
	}
	p, q := d.place(a), d.place(b)
	return p.known && q.known && p.overlaps(q.diskPlace)
}

// liesIn says whether dir is path or one of the directories above it, by what
// they are and not by name.
func (d *Disks) liesIn(path, dir string) bool {
	top := d.id(dir)
	if top == (fileID{}) {
		return false
	}
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		if d.id(p) == top {
			return true
		}
		if p == filepath.Dir(p) {
			return false
		}
	}
}

func (d *Disks) id(path string) fileID {
	id, known := d.ids[path]
	if !known {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil {
			id = fileID{st.Dev, st.Ino}
		}
		d.ids[path] = id
	}
	return id
}

func (d *Disks) place(dir string) knownPlace {
	p, asked := d.places[dir]
	if !asked {
		p.diskPlace, p.known = d.onDisk(dir)
		d.places[dir] = p
	}
	return p
}

// onDisk finds the place of a directory, which need not be there yet. It is not
// known where this process does not see its mounts (/proc).
func (d *Disks) onDisk(dir string) (diskPlace, bool) {
	fd, missing := openNearest(dir)
	if fd < 0 {
		return diskPlace{}, false
	}
	defer unix.Close(fd)
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err != nil || st.Mask&unix.STATX_MNT_ID == 0 {
		return diskPlace{}, false
	}
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return diskPlace{}, false
	}
	m := d.mountOf(st.Mnt_id)
	if m == nil || !grant.Overlaps(m.Mountpoint, real) {
		return diskPlace{}, false
	}
	disk := fmt.Sprintf("%d:%d", m.Major, m.Minor)
	return diskPlace{disk, path.Join(m.Root, strings.TrimPrefix(real, m.Mountpoint), missing)}, true
}

// openNearest opens a directory, or the nearest one above it that is there, and
// returns what is missing.
func openNearest(dir string) (fd int, missing string) {
	for p := filepath.Clean(dir); ; p = filepath.Dir(p) {
		fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err == nil {
			return fd, missing
		}
		if p == filepath.Dir(p) {
			return -1, ""
		}
		missing = filepath.Join(filepath.Base(p), missing)
	}
}

// mountOf is the mount of this thread that has a number; nil: there is none. One that
// is not in the table came after it was read.
func (d *Disks) mountOf(id uint64) *mountinfo.Info {
	if m := d.mounts[id]; m != nil {
		return m
	}
	d.mounts = map[uint64]*mountinfo.Info{}
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	all, err := mountinfo.GetMountsFromReader(f, nil)
	if err != nil {
		return nil
	}
	for _, m := range all {
		d.mounts[uint64(m.ID)] = m
	}
	return d.mounts[id]
}
