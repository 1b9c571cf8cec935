package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// Schema of every answer.
const Schema = "wsmount.store/v1"

// Verb is a command.
type Verb struct {
	Name, Args  string // "state read", "PROJECT FILE"
	Usage       string
	Description string
	Least, Most int // number of arguments
	Flags       []Flag
	Changes     bool // it makes something
	Workspace   bool // it resolves a workspace as mount does

	run func(ctx context.Context, c Call) (Answer, exit.Code, error)
}

// Flag is a flag with a value.
type Flag struct{ Name, Usage string }

// Call is a use of a verb.
type Call struct {
	Args  []string
	Flag  func(name string) string // its value; "": not given
	Given func(name string) bool   // whether it was given; nil: ask Flag alone
	Input io.Reader                // the content to write
	// Show prints the answer of a verb that only reads, before the backend is closed, which
	// may have much to send. nil: Do returns every answer.
	Show func(Answer) error
	Host Host

	reads bool // it changes nothing
}

// Do runs the verb. The answer is nil if Call.Show had it. code is the exit code of the program
// if err is nil. An answer together with err means that the answer holds, and that something
// else failed, such as sending earlier unsent changes.
func (v Verb) Do(ctx context.Context, c Call) (Answer, exit.Code, error) {
	for _, f := range v.Flags {
		// A variable that is not set must not make a write one without a condition.
		if c.Given != nil && c.Given(f.Name) && c.Flag(f.Name) == "" {
			return nil, 0, exit.New(exit.Usage, "--%s has no value", f.Name).Hint("give it one, or leave it out")
		}
	}
	c.reads = !v.Changes
	return v.run(ctx, c)
}

// Answer is the result of a verb. It marshals to JSON, and prints itself for pipes. A method
// Notes gives further texts for a person.
type Answer interface{ Print(w io.Writer) error }

const (
	backendFlag  = "backend"
	requiresFlag = "requires"
	ifMatchFlag  = "if-match"
)

var (
	backend  = Flag{backendFlag, "use the memory of this `NAME`, such as device-local or vault"}
	requires = Flag{requiresFlag, "refuse to use what does not promise `LIST`, such as sync,encryption"}
	ifMatch  = Flag{ifMatchFlag, "replace only what has this `ETAG`; none: only make what is not there"}
)

const places = "\n\nWithout a WORKSPACE the locator is one of agentm's memory: of storage.backend in its configuration, .agentm-config.json in $AGENTM_INSTALL_PREFIX, else in ~/.claude; else of " +
	"$MEMORY_VAULT_PATH, else of ~/.agentm/memory. Memory, or a workspace, in which the operator's own space lies, as allow_personal of the host configuration names it, or that lies in one and not in its memory, is refused; so is memory with the configuration of wsmount or agentm in it, or wsmount's state. Changes of a vault take agentm's lock in " +
	"$XDG_CACHE_HOME, else in ~/.cache: none is lost if agentm has the same. A WORKSPACE is an address, a manifest, or a path in a mount; one that is mounted is used through its mount."

// Verbs are all commands: those of a backend, but for resolve, which only names.
func Verbs() []Verb {
	verbs := []Verb{
		{Name: "read", Usage: "print a file", Least: 1, run: inPlace(read),
			Description: "Prints the content as it is. It is text: what is not UTF-8 is refused. With --json there is the etag too, the SHA-256 of the content."},
		{Name: "write", Usage: "write standard input to a file", Least: 1, Changes: true, Flags: []Flag{ifMatch}, run: inPlace(write),
			Description: "Replaces the file in one step once standard input has ended, and makes missing directories. With --if-match it does so only " +
				"if the file's content has that SHA-256, or with none only if nothing is there; else the exit code is 8, and nothing changed. Of a workspace that is mounted the " +
				"store itself is asked, and not what the mount shows of it; a mount that sends changes later, as of pull-push or with --write-back, takes no condition.\n\n" +
				"  echo '# Plan' | wsmount store write projects/atlas/plan.md"},
		{Name: "list", Args: "[[WORKSPACE] LOCATOR]", Usage: "list a directory", run: inPlace(list),
			Description: "Prints the immediate children, each on a line with its whole locator, sorted. Of what is not there, and of a file, there are none. " +
				"A name that no locator has, as one with a backslash, is told of on standard error, and in unnamed with --json. The root is `.`."},
		{Name: "exists", Usage: "tell whether something is there", Least: 1, run: inPlace(exists),
			Description: "The exit code is 0 if a file or directory is there, and 4 if nothing is, and only then. Prints nothing without --json."},
		{Name: "info", Usage: "describe a file or a directory", Least: 1, run: inPlace(info),
			Description: "Prints what it is, its bytes, when it changed if that is known, and its locator."},
		{Name: "mkdir", Usage: "make a directory", Least: 1, Changes: true, run: inPlace(mkdir),
			Description: "Makes missing parents too. One that is there is no error."},
	}
	for i := range verbs {
		v := &verbs[i]
		v.Args, v.Most, v.Workspace, v.Description = cmp.Or(v.Args, "[WORKSPACE] LOCATOR"), 2, true, v.Description+places
		v.Flags = append(v.Flags, backend, requires)
	}
	return append(append(verbs, personalVerb()), projectVerbs()...)
}

// onFiles is the function of a verb at a place.
type onFiles func(ctx context.Context, b seam.Backend, l seam.Locator, c Call) (Answer, exit.Code, error)

// inPlace is a verb whose last argument is a locator, in memory or in the workspace that is
// named before it.
func inPlace(do onFiles) func(context.Context, Call) (Answer, exit.Code, error) {
	return func(ctx context.Context, c Call) (Answer, exit.Code, error) {
		if _, err := mountspec.ParseAddress(strings.Join(c.Args, " ")); err == nil {
			return nil, 0, exit.New(exit.Usage, "%s is the address of a workspace, and no LOCATOR follows", c.Args[0]).
				Hint("`.` is its root; in memory write ./%s for what has that name", c.Args[0])
		}
		b, err := c.open(ctx)
		if err != nil {
			return nil, 0, apart(err)
		}
		key := append([]string{""}, c.Args...)[len(c.Args)]
		return c.closing(b, func() (Answer, exit.Code, error) {
			l, err := b.Resolve(key)
			if err != nil {
				return nil, 0, err
			}
			return do(ctx, b, l, c)
		})
	}
}

// apart gives an unavailable workspace or memory another exit code than Unresolvable, which
// scripts take to mean only that a file does not exist.
func apart(err error) error {
	var e *exit.Error
	if !errors.As(Refusal(err), &e) || e.Code != exit.Unresolvable {
		return err
	}
	told := *e
	told.Code = exit.Failed
	return &told
}

// text reads the content to write.
func (c Call) text() (string, error) {
	if f, is := c.Input.(*os.File); is && wasClosed(f) {
		return "", exit.New(exit.Usage, "standard input is closed").Hint("give it what is to be written; < /dev/null writes an empty file")
	}
	text, err := io.ReadAll(c.Input)
	if err != nil {
		return "", fmt.Errorf("standard input: %w", err)
	}
	return string(text), nil
}

// wasClosed reports whether the program was started with f closed: then f is /dev/null, open for
// reading and writing.
func wasClosed(f *os.File) bool {
	info, err := f.Stat()
	null, unknown := os.Stat(os.DevNull)
	if err != nil || unknown != nil || !os.SameFile(info, null) {
		return false
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR
}

// closing runs use, and then closes the backend.
func (c Call) closing(used io.Closer, use func() (Answer, exit.Code, error)) (Answer, exit.Code, error) {
	answer, code, err := use()
	if err != nil {
		answer = nil
	}
	if answer != nil && c.reads && c.Show != nil {
		answer, err = nil, c.Show(answer)
	}
	return answer, code, errors.Join(err, used.Close())
}

// open opens the workspace before a locator, or memory.
func (c Call) open(ctx context.Context) (b seam.Backend, err error) {
	if len(c.Args) < 2 {
		b, err = c.memory(ctx)
	} else {
		b, err = c.workspace(ctx)
	}
	if err == nil && c.Host.ReadOnly {
		b = &guarded{Backend: b, readOnly: "flag (--read-only)"}
	}
	return b, err
}

func (c Call) workspace(ctx context.Context) (seam.Backend, error) {
	required, err := seam.ParseCapabilities(c.Flag(requiresFlag))
	if err != nil {
		return nil, err
	}
	if c.Flag(backendFlag) != "" {
		return nil, exit.New(exit.Usage, "--%s is for memory, and %s is a workspace", backendFlag, c.Args[0]).Hint("give one of the two")
	}
	b, err := c.Host.openWorkspace(ctx, c.Args[0], c.reads)
	if err != nil {
		return nil, err
	}
	if err := checkPromises(c.Args[0], b.(divided), required); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// memory opens the memory that the flag names, or that the configuration chooses.
func (c Call) memory(ctx context.Context) (seam.Backend, error) {
	s := c.Host.Settings
	s.Backend, s.ReadOnly = c.Flag(backendFlag), c.reads
	required, err := seam.ParseCapabilities(c.Flag(requiresFlag))
	if err != nil {
		return nil, err
	}
	return c.Host.Backends.Select(ctx, s, required)
}

// untilSignal is ctx for a change, and ends on a signal that ends programs: the change then
// releases its locks, and leaves nothing half done. A second signal ends the program as
// usual, as does the first one before the change began.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ends := slices.DeleteFunc([]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}, signal.Ignored) // as under nohup
	if len(ends) == 0 {
		return context.WithCancel(ctx)
	}
	ctx, stop := signal.NotifyContext(ctx, ends...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

func read(ctx context.Context, b seam.Backend, l seam.Locator, _ Call) (Answer, exit.Code, error) {
	text, err := b.Read(ctx, l)
	return content{at(l), text, seam.ETagOf(text)}, exit.Done, err
}

func write(ctx context.Context, b seam.Backend, l seam.Locator, c Call) (Answer, exit.Code, error) {
	text, err := c.text()
	if err != nil {
		return nil, 0, err
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	if match := c.Flag(ifMatchFlag); match == "" {
		l, err = b.Write(ctx, l, text)
	} else {
		l, err = writeIf(ctx, b, l, match, text)
	}
	return written{at(l), seam.ETagOf(text)}, exit.Done, err
}

func writeIf(ctx context.Context, b seam.Backend, l seam.Locator, match, text string) (seam.Locator, error) {
	old, err := parseIfMatch(match)
	if err != nil {
		return l, err
	}
	c, ok := b.(seam.Conditional)
	if !ok {
		return l, errUnguarded(l)
	}
	return c.WriteIf(ctx, l, old, text)
}

func parseIfMatch(match string) (seam.ETag, error) {
	old, err := seam.ParseETag(match)
	if err != nil {
		return old, exit.New(exit.Usage, "--if-match: %w", err).Hint("`wsmount store read --json` tells it, and sha256sum does")
	}
	return old, nil
}

// errUnguarded is the error of a condition that could not be kept.
func errUnguarded(l seam.Locator) error {
	return refuse(providers.MethodWrite, l, providers.ErrUnsupported, "nothing keeps writers apart there")
}

func list(ctx context.Context, b seam.Backend, l seam.Locator, _ Call) (Answer, exit.Code, error) {
	children, err := b.List(ctx, l)
	out := listing{at(l), []string{}, nil}
	for _, child := range children {
		out.Children = append(out.Children, child.Key())
	}
	var unnamed *seam.UnnamedError
	if errors.As(err, &unnamed) {
		out.Unnamed, err = unnamed.Names, nil
	}
	return out, exit.Done, err
}

func exists(ctx context.Context, b seam.Backend, l seam.Locator, _ Call) (Answer, exit.Code, error) {
	there, err := b.Exists(ctx, l)
	code := exit.Done
	if !there {
		code = exit.Unresolvable
	}
	return presence{at(l), there}, code, err
}

func info(ctx context.Context, b seam.Backend, l seam.Locator, _ Call) (Answer, exit.Code, error) {
	found, err := b.Info(ctx, l)
	return description{at(l), found.IsDir, found.Size, found.ModTime}, exit.Done, err
}

func mkdir(ctx context.Context, b seam.Backend, l seam.Locator, _ Call) (Answer, exit.Code, error) {
	ctx, stop := untilSignal(ctx)
	defer stop()
	made, err := b.Mkdir(ctx, l)
	return at(made), exit.Done, err
}
