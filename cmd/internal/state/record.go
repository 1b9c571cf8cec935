package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/fs/proc"
	"github.com/wsmount/wsmount/providers/flock"
)

// A Record says which daemon serves a working copy, and where.
type Record struct {
	Schema     string    `json:"schema"` // wsmount.mount/v1
	Workspace  string    `json:"workspace"`
	Mountpoint string    `json:"mountpoint"`
	Device     string    `json:"device,omitempty"` // major:minor, tells this mount from another at its mount point
	Source     string    `json:"source,omitempty"` // of the request, as resolved
	PID        int       `json:"pid"`
	StartTicks uint64    `json:"startTicks"` // tells a process from a later one of the same number
	BootID     string    `json:"bootId"`
	Started    time.Time `json:"started"`
	Version    string    `json:"version"`
	Log        string    `json:"log,omitempty"`  // a file, or empty: the journal or the terminal
	Tied       bool      `json:"tied,omitempty"` // it ends with the last command that uses it

	Dir string `json:"-"` // where the record was found
}

// RecordSchema is the Schema of a Record.
const RecordSchema = "wsmount.mount/v1"

// Identify fills in the values that tell this process from every other.
func (r *Record) Identify() error {
	ticks, err := startTicks(os.Getpid())
	if err != nil {
		return err
	}
	r.Schema, r.PID, r.StartTicks, r.BootID = RecordSchema, os.Getpid(), ticks, bootID()
	return nil
}

// Alive reports whether the daemon of the record still runs.
func (r *Record) Alive() bool {
	ticks, err := startTicks(r.PID)
	return err == nil && ticks == r.StartTicks && r.BootID == bootID()
}

// Kill ends the daemon of the record with SIGKILL. A process of the same number
// that is not the daemon is never hit; a daemon that has ended is no error.
func (r *Record) Kill() error {
	fd, err := unix.PidfdOpen(r.PID, 0) // names one process, whatever its number comes to mean
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("state: process %d: %w", r.PID, err)
	}
	defer unix.Close(fd)
	if !r.Alive() {
		return nil
	}
	err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("state: kill %d: %w", r.PID, err)
	}
	return nil
}

// SocketPath returns where the daemon's control API listens.
func (r *Record) SocketPath() string { return filepath.Join(r.Dir, socketName) }

// Status returns the last status that the daemon wrote, and when.
func (r *Record) Status() ([]byte, time.Time, error) {
	name := filepath.Join(r.Dir, statusName)
	fi, err := os.Stat(name)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("state: %w", err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("state: %w", err)
	}
	return b, fi.ModTime(), nil
}

// startTicks reads when a process began. A process that has ended and only waits
// for its parent counts as gone, but not while threads of it still end: they hold
// its locks.
func startTicks(pid int) (uint64, error) {
	s, err := proc.Read("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return 0, fmt.Errorf("state: %w", err)
	}
	if s.Dead() && threads(pid) <= 1 {
		return 0, errors.New("state: no such process")
	}
	return s.Started, nil
}

func threads(pid int) int {
	tasks, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	return len(tasks)
}

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// SaveRecord writes the record of the running mount.
func (d *Dir) SaveRecord(r Record) error {
	b, err := exactjson.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return d.write(recordName, append(b, '\n'))
}

// SaveStatus writes the last status, as JSON.
func (d *Dir) SaveStatus(status []byte) error { return d.write(statusName, status) }

// SaveStorage writes the place that the working copy is of, the directory's name being a hash, and
// by which provider.
func (d *Dir) SaveStorage(place, provider string) error {
	return d.write(storeName, []byte(place+"\n"+provider+"\n"))
}

// parent says in the directory of a part which mount it is a part of.
type parent struct {
	Dir string `json:"dir"` // that of the mount
	At  string `json:"at"`  // in the mount
}

// SaveParent notes that the directory is of a part, at a place in the mount that whole is of.
func (d *Dir) SaveParent(whole *Dir, at string) error {
	b, err := exactjson.Marshal(parent{whole.path, at})
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return d.write(parentName, b)
}

// readParent returns the living mount that a directory is a part of, and where; nil: none
// that has said so.
func readParent(dir string) (whole *Record, at string) {
	var p parent
	if b, err := os.ReadFile(filepath.Join(dir, parentName)); err != nil || exactjson.Unmarshal(b, &p) != nil {
		return nil, ""
	}
	r, err := readRecord(p.Dir)
	if err != nil || !r.Alive() {
		return nil, ""
	}
	return r, p.At
}

// MountOf is the living mount that the working copy in a directory is of, or of a part of which;
// nil: there is none.
func MountOf(dir string) *Record {
	r, err := readRecord(dir)
	if err == nil && r.Alive() {
		return r
	}
	whole, _ := readParent(dir)
	return whole
}

func forgetParent(dir string) error {
	if err := os.Remove(filepath.Join(dir, parentName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

// StorageOf is the place of the storage of the working copy in a directory, and its provider; ""
// where that is not noted.
func StorageOf(dir string) (place, provider string) {
	b, _ := os.ReadFile(filepath.Join(dir, storeName))
	place, provider, _ = strings.Cut(string(b), "\n")
	return place, strings.TrimSuffix(provider, "\n")
}

func (d *Dir) write(name string, b []byte) error {
	return d.WhileFull(func() error { return writeFile(filepath.Join(d.path, name), b) })
}

// writeFile replaces a file at once. It is not made durable: a record does not
// mean anything after a power loss.
func writeFile(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

func readRecord(dir string) (*Record, error) {
	b, err := os.ReadFile(filepath.Join(dir, recordName))
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	var r Record
	if err := exactjson.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("state: %s: %w", dir, err)
	}
	r.Dir = dir
	return &r, nil
}

// List returns the records of all mounts below a state directory, by mount
// point, those of dead daemons included. A root that does not exist has none.
func List(root string) ([]*Record, error) {
	if _, err := os.ReadDir(root); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, exit.New(exit.Failed, "state directory: %w", err).Hint("give --state-dir as it was given to mount, or ask as the user who mounted")
	}
	names, err := filepath.Glob(filepath.Join(escapeGlob(root), "*", "*", "*", recordName))
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	var out []*Record
	for _, name := range names {
		r, err := readRecord(filepath.Dir(name))
		if err != nil {
			continue // being replaced, or not ours: it names no mount
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *Record) int { return strings.Compare(a.Mountpoint, b.Mountpoint) })
	return out, nil
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Forget removes the record of a daemon that is gone. A record whose directory
// another daemon has locked meanwhile stays.
func Forget(r *Record) error {
	lock, err := flock.Exclusive(filepath.Join(r.Dir, lockName))
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	defer func() { _ = lock.Close() }()
	return os.Remove(filepath.Join(r.Dir, recordName))
}

// Copies lists the working copies with files, or a clone, below a state directory: of one
// workspace, or with "" of all owners or slugs.
func Copies(root, owner, slug string) ([]string, error) {
	pick := func(s string) string {
		if s == "" {
			return "*"
		}
		return escapeGlob(s)
	}
	if _, err := os.ReadDir(root); errors.Is(err, fs.ErrPermission) { // Glob would find nothing then
		return nil, exit.New(exit.Denied, "state directory: %w", err).Hint("run it as who mounted, or as root")
	}
	var dirs []string
	for _, part := range parts {
		names, err := filepath.Glob(filepath.Join(escapeGlob(root), pick(owner), pick(slug), "*", part))
		if err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
		for _, name := range names {
			dirs = append(dirs, filepath.Dir(name))
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// IsCopy reports whether a directory is that of a working copy.
func IsCopy(dir string) bool {
	return slices.ContainsFunc(parts[:], func(part string) bool {
		_, err := os.Stat(filepath.Join(dir, part))
		return err == nil
	})
}
