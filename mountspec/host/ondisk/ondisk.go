// Package ondisk compares directories by where their bytes lie. It knows that a directory
// has more than one path where it, or one above or in it, is mounted a second time, and
// promises to recognize two such paths as far as this process sees its mounts.
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
// to it: a bind mount shows a part of a disk at a second path, with other
// names and inode numbers above it.
type diskPlace struct {
	disk string // major:minor
	path string // from the root of the disk
}

// overlaps says whether one lies in the other.
func (p diskPlace) overlaps(q diskPlace) bool {
	return p.disk == q.disk && grant.Overlaps(p.path, q.path)
}

// Disks caches lookups of the directories and mounts of this machine for one
// comparison: many workspaces lie below the same directories, and on the same mount.
type Disks struct {
	names  map[string]name
	places map[string]knownPlace
	mounts map[uint64]*mountinfo.Info
}

// A name is the result of looking at a path.
type name struct {
	leads fileID // links followed
	plain bool   // there are no links on the way, nor is it one
	mount uint64 // of one that is plain; 0: not known
}

// A fileID identifies the target of a name; zero: it cannot be looked at.
type fileID struct{ dev, ino uint64 }

type knownPlace struct {
	diskPlace
	known bool
}

// New knows nothing yet.
func New() *Disks { return &Disks{names: map[string]name{}, places: map[string]knownPlace{}} }

// Overlap reports whether a directory is another one or lies in it, or the other way
// round, whichever paths they have. Neither need exist.
func (d *Disks) Overlap(a, b string) bool {
	if d.liesIn(a, b) || d.liesIn(b, a) {
		return true
	}
	p, q := d.place(a), d.place(b)
	return p.known && q.known && p.overlaps(q.diskPlace)
}

// Names are names of a directory, and of those that it lies in, itself among them: by path,
// by the inode at the path, and by its place on the disk. Of two that Overlap one has a name
// among those above the other.
func (d *Disks) Names(dir string) (own, above []string) {
	for p := filepath.Clean(dir); ; p = filepath.Dir(p) {
		names := []string{"path " + p}
		if id := d.look(p).leads; id != (fileID{}) {
			names = append(names, fmt.Sprintf("inode %d:%d", id.dev, id.ino))
		}
		if above = append(above, names...); own == nil {
			own = names
		}
		if p == filepath.Dir(p) {
			break
		}
	}
	if at := d.place(dir); at.known {
		own = append(own, "disk "+at.disk+path.Join("/", at.path))
		for p := path.Join("/", at.path); ; p = path.Dir(p) {
			if above = append(above, "disk "+at.disk+p); p == "/" {
				break
			}
		}
	}
	return own, above
}

// liesIn says whether dir is path or one of the directories above it, by
// inode and not by name.
func (d *Disks) liesIn(path, dir string) bool {
	top := d.look(dir).leads
	if top == (fileID{}) {
		return false
	}
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		if d.look(p).leads == top {
			return true
		}
		if p == filepath.Dir(p) {
			return false
		}
	}
}

// look looks at a path once, without opening it: there may be thousands.
func (d *Disks) look(path string) name {
	n, known := d.names[path]
	if known {
		return n
	}
	var st unix.Statx_t
	stat := func(flags int) bool {
		return unix.Statx(unix.AT_FDCWD, path, flags, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_MNT_ID, &st) == nil
	}
	is := stat(unix.AT_SYMLINK_NOFOLLOW)
	if is && st.Mode&unix.S_IFMT != unix.S_IFLNK {
		if up := filepath.Dir(path); up == path || d.look(up).plain {
			n.plain = true
			if st.Mask&unix.STATX_MNT_ID != 0 {
				n.mount = st.Mnt_id
			}
		}
	} else if is {
		is = stat(0)
	}
	if is {
		n.leads = fileID{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino}
	}
	d.names[path] = n
	return n
}

func (d *Disks) place(dir string) knownPlace {
	p, asked := d.places[dir]
	if !asked {
		p.diskPlace, p.known = d.onDisk(dir)
		d.places[dir] = p
	}
	return p
}

// onDisk finds the place of a directory, which need not exist yet. It is not
// known where this process does not see its mounts (/proc).
func (d *Disks) onDisk(dir string) (diskPlace, bool) {
	dir = filepath.Clean(dir)
	if n := d.look(dir); n.plain {
		return d.onMount(n.mount, dir)
	}
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
	return d.onMount(st.Mnt_id, path.Join(real, missing))
}

// onMount is the place on disk of a path on a mount; the path has no links.
func (d *Disks) onMount(id uint64, real string) (diskPlace, bool) {
	m := d.mountOf(id)
	if m == nil || !grant.Overlaps(m.Mountpoint, real) {
		return diskPlace{}, false
	}
	disk := fmt.Sprintf("%d:%d", m.Major, m.Minor)
	return diskPlace{disk, path.Join(m.Root, strings.TrimPrefix(real, m.Mountpoint))}, true
}

// openNearest opens a directory, or the nearest one above it that exists, and
// returns the missing rest of the path.
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
