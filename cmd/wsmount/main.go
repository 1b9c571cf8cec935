// Command wsmount mounts declared workspaces: it reads a WORKSPACE.md (AIP-34),
// finds where its bytes live, and shows them as a POSIX tree under the policy
// that the manifest states and the host grants.
//
//	wsmount @acme/marketing-ops /mnt/ws
//	wsmount status /mnt/ws
//	wsmount umount /mnt/ws
//
// Each file of this package is one subcommand: its flags become options and stop
// there. Every refusal is one line with the failure and one with advice, and an
// exit code that scripts may rely on (package exit).
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/launch"
	"github.com/wsmount/wsmount/cmd/internal/nudge"
	"github.com/wsmount/wsmount/cmd/internal/screen"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
	"github.com/wsmount/wsmount/mountspec"
)

func main() {
	if len(os.Args) == 2 && os.Args[0] == nudge.ProcessName {
		if nudge.Run(os.Args[1], os.Stdin) != nil {
			os.Exit(int(exit.Failed))
		}
		return
	}
	if err := launch.TakeEnvironment(); err != nil {
		printError(os.Stderr, exit.New(exit.Failed, "the environment was not handed over: %w", err).Hint("run it with -f"))
		os.Exit(int(exit.Failed))
	}
	if command := helperCommand(os.Args[0]); command != "" {
		os.Exit(runHelper(context.Background(), command, os.Args, os.Stdout, os.Stderr))
	}
	os.Exit(int(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)))
}

// run is the whole program, without its process.
func run(ctx context.Context, words []string, stdout, stderr io.Writer) exit.Code {
	err := perform(ctx, commands(), words, stdout, stderr)
	if err == nil {
		return exit.Done
	}
	return exit.From(err).Code
}

// perform executes a command line, and prints its error.
func perform(ctx context.Context, commands []*cli.Command, words []string, stdout, stderr io.Writer) error {
	in, err := parseArgs(commands, flagKinds(commands), words)
	if err == nil {
		err = in.run(ctx, commands, stdout, stderr)
	}
	e := exit.From(err)
	if e == nil || e.What == "" { // it was printed already
		return err
	}
	if in.json() {
		_ = printJSON(stdout, refusal{control.ErrorSchema, e.What, e.Details, e.Advice, e.Code.String(), int(e.Code)})
	}
	printError(stderr, e)
	return err
}

// refusal is an error as --json shows it.
type refusal struct {
	Schema  string   `json:"schema"`
	Error   string   `json:"error"`
	Details []string `json:"details,omitempty"`
	Hint    string   `json:"hint,omitempty"`
	Code    string   `json:"code"`
	Exit    int      `json:"exit"`
}

// silent ends the program with a code if everything was printed already.
func silent(c exit.Code) error {
	if c == exit.Done {
		return nil
	}
	return &exit.Error{Code: c}
}

func printError(w io.Writer, e *exit.Error) {
	s, text := screen.Of(w), "\n"+e.Text()
	for begins, c := range map[string]screen.Colour{"wsmount:": screen.Bad, "hint:": screen.Known} {
		text = strings.Replace(text, "\n"+begins, "\n"+s.Paint(c, begins), 1)
	}
	fmt.Fprint(w, text[1:])
}

// oneLine is wrap.OneLine.
func oneLine(s string) string { return wrap.OneLine(s) }

// show prints the result of a command: as JSON, or for a person.
func show[T any](c *cli.Context, found T, print func(io.Writer, T)) error {
	if c.Bool("json") {
		return printJSON(c.App.Writer, found)
	}
	print(c.App.Writer, found)
	return nil
}

// printEach prints a line for each text.
func printEach(w io.Writer, begins string, list []string) {
	for _, text := range list {
		fmt.Fprintf(w, "%s%s\n", begins, oneLine(text))
	}
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(exactjson.Escape(v))
}

func (in *invocation) json() bool {
	for _, f := range in.flags {
		if f == "--json" || f == "--json=true" {
			return true
		}
	}
	return false
}

// run chooses between help, version, the command, and an error.
func (in *invocation) run(ctx context.Context, commands []*cli.Command, stdout, stderr io.Writer) error {
	leaf := in.leaf()
	switch {
	case in.version && leaf == nil:
		return printVersion(stdout, in.json())
	case in.help, leaf == nil && len(in.args) == 0:
		return in.printHelp(stdout)
	case leaf == nil, len(leaf.Subcommands) > 0 && len(in.args) > 0:
		return in.unknownCommand(commands)
	case len(leaf.Subcommands) > 0:
		return in.printHelp(stdout)
	case in.version:
		return in.unknownFlag("--version")
	}
	return newApp(commands, stdout, stderr).RunContext(ctx, in.words())
}

// unknownCommand suggests commands for the first argument, which may have been meant as
// a workspace if no command precedes it.
func (in *invocation) unknownCommand(commands []*cli.Command) error {
	leaf := in.leaf()
	if leaf != nil {
		commands = leaf.Subcommands
	}
	var names []string
	for _, c := range commands {
		names = append(names, c.Names()...)
	}
	err := exit.New(exit.Usage, "%s has no command %q", in.path(), oneLine(in.args[0]))
	if _, bad := mountspec.ParseAddress("@" + in.args[0]); bad == nil && leaf == nil {
		return err.Hint("a workspace is written @%s, and a directory ./%s", in.args[0], in.args[0])
	}
	if question := suggest.Phrase(in.args[0], names); question != "" {
		return err.Hint("%s", question)
	}
	if leaf == nil {
		return err.Hint("see `%s --help`", in.path())
	}
	return err.Hint("its commands are %s: see `%s --help`", strings.Join(names, ", "), in.path())
}

// newApp sets the library up to do no more than read flags and call actions.
func newApp(commands []*cli.Command, stdout, stderr io.Writer) *cli.App {
	return &cli.App{
		Name: "wsmount", Commands: commands, Writer: stdout, ErrWriter: stderr,
		HideHelp: true, HideVersion: true, HideHelpCommand: true,
		DisableSliceFlagSeparator: true,
		Compiled:                  time.Unix(1, 0), // else the library stats its name in the working directory, maybe a mount
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError: func(_ *cli.Context, err error, _ bool) error {
			return exit.New(exit.Usage, "%w", err).Hint("see `wsmount --help`")
		},
	}
}

// commands lists every command of the program.
func commands() []*cli.Command {
	all := []*cli.Command{
		mountCommand(), umountCommand(), statusCommand(), eventCommand(), execCommand(),
		pullCommand(), commitCommand(), pushCommand(),
		logCommand(), diffCommand(), restoreCommand(), conflictsCommand(), recoverCommand(), cacheCommand(),
		validateCommand(), resolveCommand(), doctorCommand(), initCommand(), publishCommand(), schemaCommand(), registryCommand(), listCommand(), findCommand(),
		storeCommand(), mcpCommand(), uiCommand(), debugCommand(), versionCommand(), completionCommand(), helpCommand(),
	}
	for _, c := range all {
		prepare(c)
	}
	return all
}

// prepare gives a command and its subcommands the common settings and flags.
func prepare(c *cli.Command) {
	c.HideHelp, c.HideHelpCommand = true, true
	c.OnUsageError = func(_ *cli.Context, err error, _ bool) error {
		return exit.New(exit.Usage, "%w", badFlag(c.Flags, err)).Hint("see `wsmount %s --help`", c.Name)
	}
	if len(c.Subcommands) == 0 {
		c.Flags = append(c.Flags, commonFlags()...)
	}
	for _, s := range c.Subcommands {
		prepare(s)
	}
}

var badValue = regexp.MustCompile(`(?s)^invalid value (".*") for flag -(\S+): `) // as package flag says it

// badFlag rewords the library's error for an invalid value of a flag.
func badFlag(flags []cli.Flag, err error) error {
	m := badValue.FindStringSubmatch(err.Error())
	for _, f := range flags {
		if m == nil || !slices.Contains(f.Names(), m[2]) {
			continue
		}
		switch f.(type) {
		case *cli.DurationFlag:
			return fmt.Errorf("--%s %s is no time, such as 90s or 1h30m", m[2], m[1])
		case *cli.IntFlag, *cli.UintFlag:
			return fmt.Errorf("--%s %s is no number", m[2], m[1])
		}
	}
	return err
}

// commonFlags are understood by every command.
func commonFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "config", EnvVars: []string{"WSMOUNT_CONFIG"}, Usage: "host configuration `FILE` instead of the usual places"},
		&cli.StringFlag{Name: "state-dir", EnvVars: []string{"WSMOUNT_STATE_DIR"}, Usage: "`DIR` for locks, logs and the state of mounts"},
		&cli.BoolFlag{Name: "json", Usage: "print JSON instead of text; a byte of a name that is not UTF-8 is \\u0000 and its two hexadecimal digits there"},
	}
}

// wantArgs returns the arguments when there are as many as the synopsis says.
func wantArgs(c *cli.Context, least, most int) ([]string, error) {
	args := c.Args().Slice()
	if len(args) < least || len(args) > most {
		return nil, exit.New(exit.Usage, "%s", argCount(len(args), least, most)).
			Hint("wsmount %s", synopsis(c.Command))
	}
	for _, a := range args {
		if a == "" {
			return nil, exit.New(exit.Usage, "an argument is empty").Hint("wsmount %s", synopsis(c.Command))
		}
	}
	return args, nil
}

func argCount(got, least, most int) string {
	need := fmt.Sprint(least)
	if most > least {
		need = fmt.Sprintf("%d to %d", least, most)
	}
	noun := "arguments are"
	if need == "1" {
		noun = "argument is"
	}
	return fmt.Sprintf("%s %s needed, %d given", need, noun, got)
}
