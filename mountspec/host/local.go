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

// locate finds where the bytes lie. It decides nothing about whether the
// workspace may have them.
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

// scratchOf names the default directory of a workspace. An unverified manifest
// only claims its address, so its own place goes by where it lies: it does not
// see what the workspace of that name has written.
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

// scratch is where dev-local workspaces without a root lie.
func (r *Resolver) scratch() string {
	return filepath.Join(location.Real(r.o.Temp), "wsmount-"+strconv.Itoa(os.Geteuid()))
}

// openLocal looks at the directory itself, not at its name: what is opened
// here is what Dev and Ino say later.
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

// grantLocal says whether the workspace may have its directory: below its
// own always, below allow_paths when it is registered, and the default for
// dev-local.
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

// makeLocal makes the directory of a dev-local workspace that has everything else.
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

// grantScratch checks the default directory of dev-local. Its name is known
// to every user of the machine, who may have made it first.
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

// checkScratch says whether the default directory, and each down to it, is the
// user's alone.
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
