package sandbox

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
)

// A Spec names the command, and the files that it sees.
type Spec struct {
	Command []string // as in argv
	Mounts  []Mount
	Env     [][2]string // names and values, beside PATH, HOME and LANG
	Dir     string      // working directory; empty: the first mount, or /tmp
	Limits  Limits
	// Hidden are paths of the host that must not be seen: one of them below a
	// directory that is shown refuses.
	Hidden                []string
	Stdin, Stdout, Stderr *os.File
	Terminal              bool             // Interactive: the command gets a terminal of its own in the place of that
	Signals               <-chan os.Signal // are passed on; nil: none are
}

// A Mount shows a directory in the sandbox.
type Mount struct {
	At       string   // clean and absolute
	Dir      *os.File // is shown, even if its name changes
	ReadOnly bool
}

// Limits bound a command. Zero is none.
type Limits struct {
	Time      time.Duration // by the clock
	CPU       time.Duration // of a processor, for each process
	Memory    int64         // bytes of address space, for each process
	Processes int           // at once, threads among them
}

// helper is the program that builds sandboxes, and helperPackage Debian's with it.
const helper, helperPackage = "bwrap", "bubblewrap"

// Check is an error if the command cannot be run as the Spec says. The
// directories of the mounts need not exist yet.
func (s *Spec) Check() error {
	if _, err := exec.LookPath(helper); err != nil {
		return exit.New(exit.Failed, "%s is not installed: commands run under it", helper).Hint("install the package %s", helperPackage)
	}
	for _, check := range []func() error{func() error { return supports(runtime.GOARCH) }, s.checkPlaces, s.checkHidden, s.checkFiles, s.Limits.check} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// taken are the sandbox's own places. A mount in them, or around
// them, would replace the system that commands come from.
var taken = append([]string{"/usr", "/etc", "/proc", "/dev", "/sys"}, systemLinks...)

// checkPlaces refuses mounts that cover the system or lie in each other: to
// mount inside a tree, a directory must be in it, and may be a link by then.
func (s *Spec) checkPlaces() error {
	for i, m := range s.Mounts {
		for _, dir := range taken {
			if mountpoint.Within(m.At, dir) || mountpoint.Within(dir, m.At) {
				return exit.New(exit.Manifest, "the sandbox cannot mount anything at %s: %s is the system's", m.At, dir).
					Hint("choose another place, such as /workspace")
			}
		}
		for _, other := range s.Mounts[:i] {
			if mountpoint.Within(m.At, other.At) || mountpoint.Within(other.At, m.At) {
				return exit.New(exit.Manifest, "the mounts of the sandbox at %s and %s lie in each other", other.At, m.At).
					Hint("put them side by side, or compose the workspace itself with metadata.wsmount.mounts")
			}
		}
	}
	return nil
}

// supports refuses an architecture whose system calls a sandbox could not keep from keys.
func supports(arch string) error {
	if auditArch(arch) == 0 {
		return exit.New(exit.Failed, "sandboxes are not made for %s yet", arch).Hint("run the command on amd64 or arm64")
	}
	return nil
}

// checkHidden refuses a host that keeps files that are not for commands in a directory
// that they see.
func (s *Spec) checkHidden() error {
	for _, path := range s.Hidden {
		for _, dir := range shownDirs() {
			if path != "" && mountpoint.Within(path, dir) {
				return exit.New(exit.Denied, "%s lies in %s, which every sandbox shows", path, dir).Hint("keep it elsewhere")
			}
		}
	}
	return nil
}

// checkFiles refuses a directory as a standard descriptor: it leads to all files
// above it.
func (s *Spec) checkFiles() error {
	for _, f := range s.stdio() {
		if info, err := f.Stat(); err != nil {
			return exit.New(exit.Failed, "%s: %w", f.Name(), err).Hint("open it, or redirect it to /dev/null")
		} else if info.IsDir() {
			return exit.New(exit.Usage, "%s is a directory, through which a command gets out of its sandbox", f.Name()).Hint("redirect it to a file or a pipe")
		}
	}
	return nil
}

func (s *Spec) stdio() []*os.File {
	return slices.DeleteFunc([]*os.File{s.Stdin, s.Stdout, s.Stderr}, func(f *os.File) bool { return f == nil })
}
