package main

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/sandbox"
)

// defaultTimeout is the time limit of a command if the sandbox block sets none (AIP-36).
const defaultTimeout = 30 * time.Second

// codeTimedOut is the exit status of a command that exceeded its time limit, as that of
// timeout(1).
const codeTimedOut exit.Code = 124

func execCommand() *cli.Command {
	return &cli.Command{
		Name:      "exec",
		Usage:     "run a command in the sandbox of a workspace",
		ArgsUsage: "WORKSPACE -- CMD [ARG ...]",
		Description: "Runs CMD where the sandbox block of the manifest says: it sees what the block mounts, " +
			"the programs of this host, and nothing else; it has no network. The workspace is mounted for it, and " +
			"unmounted when everything is sent, unless it is mounted already. Ends with CMD's exit status, 128 and " +
			"the number of the signal that ended it, or 124 when its time was over. A refusal has its own " +
			"exit status and begins with \"wsmount:\". On a terminal CMD gets one of its own, with job control. " +
			"CMD has 30 seconds unless the block or --timeout says otherwise; when its input or its output is a terminal, " +
			"as in exec ... -- bash | tee log, it has no limit.\n\n" +
			"  wsmount exec @acme/app -- make test\n" +
			"  wsmount exec @acme/app --turn 7 --conversation c1 -- ./agent.sh",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "sandbox-provider", Usage: "run it here, whatever provider the block names; `NAME` is local"},
			&cli.BoolFlag{Name: "no-network", Usage: "run it without the network that the block asks for"},
			&cli.StringFlag{Name: "turn", Usage: "emit turn-start before it, and turn-end after it, with this `ID`"},
			&cli.StringFlag{Name: "conversation", Usage: "the conversation's `ID`, for --turn"},
			&cli.DurationFlag{Name: "timeout", DefaultText: "what the block says, else 30s, and none with a terminal at its input or output", Usage: "end it after this `TIME`; 0 is never"},
			&cli.IntFlag{Name: "max-processes", Usage: "let it have at most `N` processes and threads; not for root"},
			operatorFlag(),
			&cli.BoolFlag{Name: "trust", Usage: "a WORKSPACE given by path counts as registered for this command"},
		},
		Action: execAction,
	}
}

func execAction(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) < 2 || args[0] == "" || args[1] == "" {
		return exit.New(exit.Usage, "a workspace and a command are needed").Hint("wsmount %s", synopsis(c.Command))
	}
	if c.String("conversation") != "" && c.String("turn") == "" {
		return exit.New(exit.Usage, "--conversation is for --turn").Hint("give --turn ID too")
	}
	signals := make(chan os.Signal, 16) // before anything is mounted that would be left behind
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	p, closePlan, err := planExec(c)
	if err != nil {
		return err
	}
	defer closePlan()
	p.spec.Signals = signals
	if p.spec.Terminal { // input typed for the command must not reach the shell
		defer sandbox.FlushTyped(os.Stdin)
	}
	return p.run(c)
}

// run mounts, runs and cleans up. The command's exit status counts; if it
// succeeded, an error says that not everything is safe.
func (p *execPlan) run(c *cli.Context) error {
	at, err := p.attachAll(c)
	if err != nil {
		return firstOf(c, err, at.finish(c))
	}
	slices.Sort(p.notes) // several mounts give the same notes
	printNotes(c, slices.Compact(p.notes))
	if err := at.turn(c, "turn-start"); err != nil {
		return firstOf(c, err, at.finish(c))
	}
	res, err := sandbox.Run(c.Context, p.spec)
	at.closeDirs()
	if err == nil {
		err = at.turn(c, "turn-end")
	}
	err = firstOf(c, err, at.finish(c))
	if res.TimedOut {
		return exit.New(codeTimedOut, "the command was ended at its time limit of %s", p.spec.Limits.Time).
			Hint("raise limits.timeout_ms of the sandbox block, or give --timeout")
	}
	if res.Code == 0 {
		return err
	}
	if err != nil {
		printError(c.App.ErrWriter, exit.From(err))
	}
	return silent(exit.Code(res.Code))
}

// firstOf returns the first of two errors, and prints the second if there are both.
func firstOf(c *cli.Context, first, second error) error {
	if first == nil {
		return second
	}
	if second != nil {
		printError(c.App.ErrWriter, exit.From(second))
	}
	return first
}

// An execPlan is a checked command and the mounts that it will see.
type execPlan struct {
	tree   *daemon.Tree
	mounts []execMount
	spec   sandbox.Spec
	notes  []string
}

// An execMount is one mount of the sandbox block.
type execMount struct {
	at       string
	readOnly bool
	tree     *daemon.Tree
	part     string // value of --sandbox-mount; empty: the workspace itself
}

// limits sets the limits of the block, unless the command line gives others.
func (p *execPlan) limits(c *cli.Context, timeoutMS, cpuMS, memoryMB int64) error {
	l := &p.spec.Limits
	l.Time = timeLimit(sandbox.Attended(p.spec.Stdin, p.spec.Stdout), timeoutMS)
	if c.IsSet("timeout") {
		l.Time = c.Duration("timeout")
	}
	if l.Time < 0 || c.Int("max-processes") < 0 {
		return exit.New(exit.Usage, "a limit cannot be negative").Hint("for example --timeout 10m")
	}
	l.CPU, l.Memory, l.Processes = milliseconds(cpuMS), min(memoryMB, 1<<40)<<20, c.Int("max-processes")
	if names := l.PerProcess(); len(names) > 0 {
		p.note("the limits hold for each process of the command, not for all together: %s", strings.Join(names, "; "))
	}
	return nil
}

// timeLimit is the time limit if the command line gives none: the block's, if it
// declares one (not 0), else none for a person at a terminal.
func timeLimit(terminal bool, declaredMS int64) time.Duration {
	switch {
	case declaredMS > 0:
		return milliseconds(declaredMS)
	case terminal:
		return 0
	}
	return defaultTimeout
}

// milliseconds is a number of a manifest as a duration, capped against overflow.
func milliseconds(n int64) time.Duration {
	return time.Duration(min(n, int64(1<<62)/int64(time.Millisecond))) * time.Millisecond
}

func (p *execPlan) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}
