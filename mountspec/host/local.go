package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/location"
)

// locate finds the place of the bytes. It does not decide whether the workspace may have them.
func (s *session) locate(l *loaded) error {
	path := ""
	switch c := l.storage.Config.(type) {
	case mountspec.LocalFSConfig:
		if c.MountPath == "" {
			return unresolvable(CodeStorageCfg, l.storage.ConfigPos.String(), "add mount_path", "local-fs names no directory")
		}
		path = relativeTo(l.storageAt.dir, c.MountPath)
	case mountspec.VaultConfig:
		path = relativeTo(l.storageAt.dir, c.VaultPath)
	case mountspec.DevLocalConfig:
		if c.Root != "" {
			path = relativeTo(l.storageAt.dir, c.Root)
			break
		}
		path = s.r.scratchOf(l)
		l.local = &Local{Default: true}
		s.defaulted("root", path)
	}
	if l.dir = path; path != "" {
		if err := l.openLocal(path); err != nil {
			return err
		}
		s.step("directory", l.local.Path)
		path = l.local.Path
	}
	l.loc = s.r.cfg.locate(l.storage, path)
	s.step("location", l.loc.String())
	return nil
}

// scratchOf names the default directory of a workspace. An unverified manifest only
// claims its address, so its directory is named by its own path: it does not see
// the files of the workspace with that address.
func (r *Resolver) scratchOf(l *loaded) string {
	if l.cand.trust != Unverified {
		return filepath.Join(r.scratch(), l.ws.ID.Owner, l.ws.ID.Slug+l.scratch)
	}
	return filepath.Join(r.scratch(), ".unverified", shortHash(l.manifest)+l.scratch) // no owner begins with a dot
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// scratch is the directory of dev-local workspaces without a root.
func (r *Resolver) scratch() string {
	return filepath.Join(location.Real(r.o.Temp), "wsmount-"+strconv.Itoa(os.Geteuid()))
}

// openLocal identifies the directory by opening it, not by its name: Dev and Ino
// are those of the opened directory.
func (l *loaded) openLocal(path string) error {
	if l.local == nil {
		l.local = &Local{}
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		l.local.Path, l.local.Missing = location.Real(path), true
		return nil
	}
	if err != nil {
		return &Error{Class: Unresolvable, Where: path, What: "the directory cannot be opened", Err: err, Hint: "correct the path in the manifest, or make the directory readable"}
	}
	defer unix.Close(fd)
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return &Error{Class: Unresolvable, Where: path, What: "the directory's own path is not known", Err: err, Hint: "mount /proc"}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &Error{Class: Unresolvable, Where: path, What: "the directory cannot be looked at", Err: err, Hint: "check the file system below it"}
	}
	l.local.Path, l.local.Dev, l.local.Ino = real, st.Dev, st.Ino
	return nil
}

// grantLocal decides whether the workspace may have its directory: below its own
// always, below allow_paths when it is registered, and the default for dev-local.
func (h *granter) grantLocal(l *loaded) error {
	path := l.local.Path
	if l.local.Default {
		return h.grantScratch(l)
	}
	switch {
	case grant.Below(l.home.root, path) && l.home.root != "/":
		h.step("grant", path+" is below the workspace's own directory")
	case l.cand.trust == Unverified:
		return h.r.deny(l, "", l.storage.ConfigPos, "register the manifest: wsmount registry add "+l.home.root,
			"%s is not below %s, and the manifest is not registered", path, l.home.root)
	default:
		root, ok := h.allowedPath(path)
		if !ok {
			return h.r.deny(l, "", l.storage.ConfigPos, "add "+path+" to allow_paths of the host configuration",
				"%s is neither below the workspace's own directory nor in allow_paths", path)
		}
		h.step("grant", "allow_paths "+root)
	}
	if l.local.Missing && l.storage.Provider != mountspec.ProviderDevLocal {
		return unresolvable("", l.storage.ConfigPos.String(), "make it, or correct the path", "the directory %s does not exist", path)
	}
	return nil
}

// makeLocal makes the missing directory of a dev-local workspace, once all else is granted.
func (s *session) makeLocal(l *loaded) error {
	if l.local == nil || !l.local.Missing || !s.o.Create {
		return nil
	}
	if err := l.makeDir(l.local.Path); err != nil {
		return err
	}
	if l.local.Default {
		return s.grants.checkScratch(l.local.Path)
	}
	return nil
}

func (h *granter) allowedPath(path string) (string, bool) {
	for _, root := range h.r.cfg.AllowPaths {
		if grant.Below(location.Real(root), path) {
			return root, true
		}
	}
	return "", false
}

// grantScratch checks the default directory of dev-local. Every user of the machine
// knows its name, and may have made it first.
func (h *granter) grantScratch(l *loaded) error {
	path := l.local.Path
	if !grant.Below(h.r.scratch(), path) {
		return h.r.deny(l, "", l.storage.ConfigPos, "remove it", "%s leads to %s", h.r.scratchOf(l), path)
	}
	if l.local.Missing {
		return nil
	}
	return h.checkScratch(path)
}

// checkScratch checks that the default directory, and each above it up to
// scratch, is the user's alone.
func (h *granter) checkScratch(path string) error {
	for dir := path; ; dir = filepath.Dir(dir) {
		if err := hostfile.CheckPrivate(dir); err != nil {
			return fileError("", dir, err)
		}
		if dir == h.r.scratch() {
			return nil
		}
	}
}

func (l *loaded) makeDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return &Error{Class: Unresolvable, Where: path, What: "the directory cannot be made", Err: err, Hint: "make it by hand"}
	}
	want := l.local.Path
	l.local.Missing = false
	if err := l.openLocal(path); err != nil {
		return err
	}
	if l.local.Missing || l.local.Path != want {
		return denied("", path, "look at who changes the directories above it", "the directory was replaced while it was made")
	}
	return nil
}
