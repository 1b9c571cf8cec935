package mountpoint

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Holder is a process that keeps a mount busy.
type Holder struct {
	PID  int      `json:"pid"`
	Name string   `json:"name"` // the command's name, as in ps
	Uses []string `json:"uses"` // "working directory", "open: notes.md", ...

	Exiting bool `json:"exiting,omitempty"` // it is ending, and lets go of them by itself
	forked  bool // it has executed no program yet, and may let go of them when it does
}

// String prints the holder on one line.
func (h Holder) String() string {
	ending := ""
	if h.Exiting {
		ending = ", which is ending"
	}
	return fmt.Sprintf("%s (pid %d)%s: %s", h.Name, h.PID, ending, strings.Join(h.Uses, ", "))
}

// maxUses bounds the uses that are named of one process.
const maxUses = 4

// Holders finds the processes that use a mount by their working directory,
// root, program, open files or mappings, and the mounts inside it. In another
// mount namespace, as in a sandbox, they use a mount of their own of the same file
// system, which keeps this one busy where propagation ties the two. It reads /proc
// only. Processes of others are seen only by root; hidden counts them.
func Holders(m Mount) (found []Holder, inside []Mount, hidden int) {
	if table, err := ReadTable(); err == nil {
		inside = table.Below(m.Path)
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, inside, 0
	}
	own, _ := os.Readlink("/proc/self/ns/mnt")
	sights := views{own: {m}}
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if pid == os.Getpid() {
			continue
		}
		uses, seen := usesOf(dir, m, sights.of(dir, m))
		if !seen {
			hidden++
		}
		if len(uses) > 0 {
			found = append(found, Holder{PID: pid, Name: commandName(dir), Uses: uses, Exiting: exiting(dir), forked: forked(dir)})
		}
	}
	slices.SortFunc(found, func(a, b Holder) int { return a.PID - b.PID })
	return found, inside, hidden
}

func commandName(dir string) string {
	b, err := os.ReadFile(dir + "/comm")
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(b))
}

// views are the mounts of one file system in each mount namespace.
type views map[string][]Mount

// of returns those that a process sees; where it may not look, the one it would see
// in this namespace.
func (v views) of(dir string, m Mount) []Mount {
	space, err := os.Readlink(dir + "/ns/mnt")
	if err != nil {
		return []Mount{m}
	}
	mounts, known := v[space]
	if !known {
		for _, there := range tableOf(dir) {
			if there.Dev == m.Dev {
				mounts = append(mounts, there)
			}
		}
		v[space] = mounts
	}
	return mounts
}

// usesOf says how one process uses the mount, which it sees as others. seen is false
// where it may not look.
func usesOf(dir string, m Mount, views []Mount) (uses []string, seen bool) {
	seen = true
	for _, link := range []struct{ name, say string }{
		{"cwd", "working directory"}, {"root", "root directory"}, {"exe", "program"},
	} {
		target, err := os.Readlink(dir + "/" + link.name)
		if os.IsPermission(err) {
			seen = false
		}
		for _, view := range views {
			if err == nil && view.Path != "/" && Within(target, view.Path) {
				uses = append(uses, withPath(link.say, target, view))
				break
			}
		}
	}
	for _, view := range views {
		uses = append(uses, openFiles(dir, view)...)
	}
	if mapped := mappedFile(dir, m); mapped != "" && len(uses) == 0 {
		uses = append(uses, "mapped: "+mapped)
	}
	if extra := len(uses) - maxUses; extra > 0 {
		uses = append(uses[:maxUses], fmt.Sprintf("and %d more", extra))
	}
	return uses, seen
}

func withPath(say, target string, m Mount) string {
	if rel := strings.TrimPrefix(strings.TrimPrefix(target, m.Path), "/"); rel != "" {
		return say + ": " + rel
	}
	return say
}

// openFiles lists a process's open files of the mount by the mount id that
// fdinfo shows, which needs no question to the file system.
func openFiles(dir string, m Mount) []string {
	fds, err := os.ReadDir(dir + "/fdinfo")
	if err != nil {
		return nil
	}
	var out []string
	for _, fd := range fds {
		info, err := os.ReadFile(dir + "/fdinfo/" + fd.Name())
		if err != nil || !slices.Contains(strings.Fields(mountIDLine(string(info))), strconv.Itoa(m.ID)) {
			continue
		}
		target, err := os.Readlink(dir + "/fd/" + fd.Name())
		if err == nil {
			out = append(out, withPath("open", target, m))
		}
	}
	return out
}

func mountIDLine(fdinfo string) string {
	_, after, _ := strings.Cut(fdinfo, "mnt_id:")
	line, _, _ := strings.Cut(after, "\n")
	return line
}

// mappedFile returns the first mapped file of the mount's device.
func mappedFile(dir string, m Mount) string {
	f, err := os.Open(dir + "/maps")
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text()) // address perms offset dev inode path
		if len(fields) >= 6 && sameDevice(fields[3], m.Dev) {
			return filepath.Base(fields[5])
		}
	}
	return ""
}

// sameDevice compares maps' hexadecimal major:minor with mountinfo's decimal one.
func sameDevice(hex, dec string) bool {
	hMajor, hMinor, ok := strings.Cut(hex, ":")
	dMajor, dMinor, ok2 := strings.Cut(dec, ":")
	return ok && ok2 && sameNumber(hMajor, dMajor) && sameNumber(hMinor, dMinor)
}

func sameNumber(hex, dec string) bool {
	h, err := strconv.ParseUint(hex, 16, 32)
	d, err2 := strconv.ParseUint(dec, 10, 32)
	return err == nil && err2 == nil && h == d
}
