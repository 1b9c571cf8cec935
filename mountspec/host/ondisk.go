package host

import (
	"bufio"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

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
	m, ok := mountOf(strconv.FormatUint(st.Mnt_id, 10))
	if !ok || !grant.Overlaps(m.at, real) {
		return diskPlace{}, false
	}
	return diskPlace{m.disk, path.Join(m.root, strings.TrimPrefix(real, m.at), missing)}, true
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

// A mountedDisk is a line of mountinfo: what of a disk is seen where.
type mountedDisk struct{ disk, root, at string }

func mountOf(id string) (mountedDisk, bool) {
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return mountedDisk{}, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// 36 35 98:0 /root /at options ...
		if x := strings.Fields(lines.Text()); len(x) > 4 && x[0] == id {
			return mountedDisk{x[2], unescape(x[3]), unescape(x[4])}, true
		}
	}
	return mountedDisk{}, false
}

var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// unescape undoes what mountinfo does to keep a path one field of one line.
func unescape(s string) string { return mountEscapes.Replace(s) }
