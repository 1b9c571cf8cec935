package host

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

// onDisk finds the place of a directory, which need not be there yet. It is not
// known where this process does not see its mounts (/proc).
func onDisk(dir string) (diskPlace, bool) {
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
	m, ok := mountOf(st.Mnt_id)
	if !ok || !grant.Overlaps(m.Mountpoint, real) {
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

// mountOf is the mount of this thread that has a number.
func mountOf(id uint64) (m *mountinfo.Info, ok bool) {
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, false
	}
	defer f.Close()
	found, err := mountinfo.GetMountsFromReader(f, func(m *mountinfo.Info) (skip, stop bool) {
		return uint64(m.ID) != id, uint64(m.ID) == id
	})
	if err != nil || len(found) == 0 {
		return nil, false
	}
	return found[0], true
}
