package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/launch"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
)

// mount(8) runs mount.TYPE for the type that -t or fstab gives, and umount(8)
// umount.TYPE for the one that the mount table shows, which is fuse.wsmount. So
// one binary stands in /usr/sbin under four names, and speaks as "External
// helpers" in those manuals says:
//
//	mount.wsmount SPEC DIR [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]
//	umount.wsmount DIR [-flnrv] [-N NAMESPACE] [-t TYPE]

// helperNames maps those names to wsmount's commands.
var helperNames = map[string]string{
	"mount.wsmount": "mount", "mount.fuse.wsmount": "mount",
	"umount.wsmount": "umount", "umount.fuse.wsmount": "umount",
}

// helperCommand is the command that the name of the program stands for, or "".
func helperCommand(arg0 string) string { return helperNames[filepath.Base(arg0)] }

// helperLetters are the flags of each helper, as getopt(3) spells them.
var helperLetters = map[string]string{"mount": "sfnvN:o:t:", "umount": "flnrvN:t:"}

// A helperCall is the request of mount(8) or umount(8).
type helperCall struct {
	words     []string // the command line for wsmount
	fake      bool     // mount -f: check everything, and do nothing
	noTable   bool     // mount -n: leave mount(8)'s own table alone
	namespace string   // the mount namespace to do it in; "": this one
	places    []string // SPEC and DIR, or DIR
	args      []string // the given arguments, without the namespace
}

// readHelperCall parses the arguments that mount(8) and umount(8) pass. -v and -t
// change nothing: a mount prints all its notes anyway, and the type is wsmount's.
// Nor do umount -n, which is about a table that umount(8) writes itself, and -r: a
// mount that cannot be unmounted stays as it is.
func readHelperCall(command string, words []string) (helperCall, error) {
	call := helperCall{words: []string{command}}
	flags := map[byte]bool{}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if len(word) < 2 || word[0] != '-' {
			call.words, call.places, call.args = append(call.words, word), append(call.places, word), append(call.args, word)
			continue
		}
		for i := 1; i < len(word); i++ {
			letter := word[i]
			at := strings.IndexByte(helperLetters[command], letter)
			if at < 0 || letter == ':' {
				return call, exit.New(exit.Usage, "unknown flag %q", "-"+oneLine(word[i:])).Hint("see mount(8), external helpers")
			}
			flags[letter] = true
			if !strings.HasPrefix(helperLetters[command][at+1:], ":") {
				call.args = append(call.args, "-"+string(letter))
				continue
			}
			value := word[i+1:]
			if value == "" && len(words) == 0 {
				return call, exit.New(exit.Usage, "-%c needs a value", letter).Hint("see mount(8), external helpers")
			}
			if value == "" {
				value, words = words[0], words[1:]
			}
			call.take(letter, value)
			break
		}
	}
	call.apply(command, flags)
	return call, nil
}

// take notes a flag that has a value.
func (h *helperCall) take(letter byte, value string) {
	if letter == 'N' {
		h.namespace = value
		return
	}
	h.args = append(h.args, "-"+string(letter), value)
	if letter == 'o' {
		h.words = append(h.words, "-o="+value)
	}
}

// apply notes the flags without one. umount(8) takes -f and -l together; --force does both.
func (h *helperCall) apply(command string, flags map[byte]bool) {
	switch {
	case command == "mount":
		h.fake, h.noTable = flags['f'], flags['n']
		if flags['s'] {
			h.words = append(h.words, "-o=sloppy")
		}
	case flags['f']:
		h.words = append(h.words, "--force")
	case flags['l']:
		h.words = append(h.words, "--lazy")
	}
}

// runHelper serves a call by mount(8) or umount(8), and returns the exit status that they expect.
func runHelper(ctx context.Context, command string, args []string, stdout, stderr io.Writer) int {
	call, err := readHelperCall(command, args[1:])
	if err == nil && call.namespace != "" {
		err = runInNamespace(call.namespace, append(args[:1:1], call.args...))
	}
	if err != nil {
		printError(stderr, exit.From(err))
		return helperExit(err)
	}
	fillEnvironment()
	switch {
	case call.fake:
		return helperExit(perform(ctx, checkOnly(commands()), call.words, stdout, stderr))
	case command == "umount":
		return helperExit(runUmountHelper(ctx, call, stdout, stderr))
	}
	return helperExit(runMountHelper(ctx, call, stdout, stderr))
}

func runUmountHelper(ctx context.Context, call helperCall, stdout, stderr io.Writer) error {
	words, err := withState(call)
	if err != nil {
		printError(stderr, exit.From(err))
		return err
	}
	return perform(ctx, commands(), words, stdout, stderr)
}

// runMountHelper mounts. In the background process, which calls it too, perform returns when the
// mount has ended, and there is nothing to note in mount(8)'s table.
func runMountHelper(ctx context.Context, call helperCall, stdout, stderr io.Writer) error {
	_, inChild := os.LookupEnv(launch.ChildVar)
	err := perform(ctx, commands(), call.words, stdout, stderr)
	if err != nil || inChild || call.noTable || os.Geteuid() != 0 {
		return err
	}
	if err := mountpoint.NoteHelper(ctx, call.places[0], call.places[1]); err != nil {
		fmt.Fprintf(stderr, "note: %s\n", oneLine(err.Error()))
	}
	return nil
}

// shownSource is the source in the mount table, if it is not the workspace: by it
// mount(8) sees whether a line of fstab is mounted.
func shownSource(workspace string) (string, error) {
	if helperCommand(os.Args[0]) == "" || strings.HasPrefix(workspace, "@") {
		return "", nil
	}
	return absolute(workspace)
}

// forAutomounter reports whether mount(8) was called for autofs(5) or an automount
// unit of systemd. Until the mount is there, the kernel blocks each process that
// enters dir and is not in the automounter's process group; and so again while the
// automounter has it unmounted. So the daemon must stay in that group.
func forAutomounter(dir string) bool {
	var st unix.Statfs_t
	return helperCommand(os.Args[0]) != "" && unix.Statfs(dir, &st) == nil && st.Type == unix.AUTOFS_SUPER_MAGIC
}

// checkOnly replaces mount's action by a check of its arguments.
func checkOnly(commands []*cli.Command) []*cli.Command {
	lookup(commands, "mount").Action = func(c *cli.Context) error {
		_, err := checkMountFlags(c)
		return err
	}
	return commands
}

// searchPath is the default of $PATH.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// fillEnvironment sets the variables that mount(8) removes for its helpers, and
// that boot scripts lack: without them a user has no state directory, and root
// another configuration at boot than in a shell.
func fillEnvironment() {
	if u, err := user.Current(); err == nil && os.Getenv("HOME") == "" && u.HomeDir != "" {
		os.Setenv("HOME", u.HomeDir)
	}
	if os.Getenv("PATH") == "" {
		os.Setenv("PATH", searchPath)
	}
}

// runInNamespace runs the program again in a mount namespace, given as a file or as
// one of its processes: the configuration, the manifest and the state are those
// visible in it. It returns only on failure. The kernel lets a process change its
// namespace only if it shares its root and working directory with no other thread,
// so this thread unshares them first; exec then ends the other threads.
func runInNamespace(namespace string, args []string) error {
	if _, err := strconv.Atoi(namespace); err == nil {
		namespace = "/proc/" + namespace + "/ns/mnt"
	}
	f, err := os.Open(namespace)
	if err != nil {
		return exit.New(exit.Usage, "mount namespace: %w", err)
	}
	defer f.Close()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return exit.New(exit.Failed, "mount namespace %s: %w", namespace, err)
	}
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNS); err != nil {
		return exit.New(exit.Failed, "mount namespace %s: %w", namespace, err).Hint("only root may enter one")
	}
	return fmt.Errorf("mount namespace %s: %w", namespace, syscall.Exec("/proc/self/exe", args, os.Environ()))
}

// The exit statuses that mount(8) and umount(8) expect of helpers. 16, for a table
// that cannot be written, is not used: the mount exists, so that is only a note.
const (
	mountDone        = 0
	mountUsage       = 1  // wrong call
	mountSystem      = 2  // out of memory, processes or descriptors
	mountBug         = 4  // a fault of the program
	mountInterrupted = 8  // by the user
	mountFailed      = 32 // everything else
)

// helperCauses come before helperCodes.
var helperCauses = []struct {
	cause  error
	status int
}{
	{launch.ErrInterrupted, mountInterrupted},
	{launch.ErrDied, mountBug},
	{syscall.ENOMEM, mountSystem},
	{syscall.EAGAIN, mountSystem},
	{syscall.EMFILE, mountSystem},
	{syscall.ENFILE, mountSystem},
}

var helperCodes = map[exit.Code]int{
	exit.Done:         mountDone,
	exit.Failed:       mountFailed,
	exit.Usage:        mountUsage,
	exit.Manifest:     mountFailed,
	exit.Unresolvable: mountFailed,
	exit.Denied:       mountFailed, // also if the store refuses
	exit.Unreachable:  mountFailed,
	exit.Unsafe:       mountFailed,
	exit.Conflict:     mountFailed,
}

// helperExit translates the error of a command.
func helperExit(err error) int {
	if err == nil {
		return mountDone
	}
	for _, row := range helperCauses {
		if errors.Is(err, row.cause) {
			return row.status
		}
	}
	return helperCodes[exit.From(err).Code]
}

// withState is the command line of an umount, with the state directory that fstab
// gives the mount if the environment has none.
func withState(call helperCall) ([]string, error) {
	if os.Getenv("WSMOUNT_STATE_DIR") != "" || len(call.places) != 1 {
		return call.words, nil
	}
	fstab, err := os.ReadFile("/etc/fstab")
	if err != nil && !os.IsNotExist(err) {
		return nil, exit.New(exit.Failed, "%w", err).Hint("make it readable, or set WSMOUNT_STATE_DIR")
	}
	if dir := mountpoint.FstabOption(string(fstab), call.places[0], "state-dir"); dir != "" {
		return slices.Concat(call.words, []string{"--state-dir=" + dir}), nil
	}
	return call.words, nil
}
