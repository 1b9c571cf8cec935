package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/cmd/internal/progress"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/statustext"
	"github.com/wsmount/wsmount/cmd/internal/unmount"
)

func eventCommand() *cli.Command {
	return &cli.Command{
		Name:      "event",
		Usage:     "tell a mount of a lifecycle event, or follow its events",
		ArgsUsage: "MOUNTPOINT EVENT | MOUNTPOINT --follow [EVENT]",
		Description: "Emits an AIP-37 event such as turn-end, waits for the pulls, commits and pushes " +
			"that the workspace's policy ties to it, and prints what they did. What changes between " +
			"turn-start and turn-end is of that turn in the history. With --follow prints " +
			"events as they happen, one JSON object per line.\n\n" +
			"  wsmount event /mnt/ws turn-start --var turnId=7 --var conversationId=c1\n" +
			"  wsmount event /mnt/ws turn-end\n" +
			"  wsmount event /mnt/ws --follow write",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "var", Usage: "payload of the event, `KEY=VALUE`; may be given several times"},
			&cli.StringFlag{Name: "at", Usage: "reach only the part of the mount at this `PATH`"},
			&cli.DurationFlag{Name: "timeout", Value: time.Minute, DefaultText: "1m", Usage: "`TIME` to wait for what the event starts while nothing of it comes further"},
			&cli.BoolFlag{Name: "no-wait", Usage: "return at once"},
			&cli.BoolFlag{Name: "follow", Usage: "print events until the mount ends"},
		},
		Action: eventAction,
	}
}

func eventAction(c *cli.Context) error {
	least := 2
	if c.Bool("follow") {
		least = 1
	}
	args, err := wantArgs(c, least, 2)
	if err != nil {
		return err
	}
	if len(args) == 2 && (args[1] != lifecycle.Any || !c.Bool("follow")) {
		if err := lifecycle.Check(args[1]); err != nil {
			return err
		}
	}
	vars, err := parseVars(c.StringSlice("var"))
	if err != nil {
		return err
	}
	r, err := findMount(c, args[0])
	if err != nil {
		return err
	}
	if c.Bool("follow") {
		return follow(c, r, append(args, lifecycle.Any)[1])
	}
	return emit(c, r, control.EventRequest{Name: args[1], At: c.String("at"), Vars: vars,
		Timeout: c.Duration("timeout").Seconds(), NoWait: c.Bool("no-wait")})
}

// parseVars reads KEY=VALUE pairs. A repeated key is an error.
func parseVars(pairs []string) (map[string]string, error) {
	vars := map[string]string{}
	for _, p := range pairs {
		key, value, ok := strings.Cut(p, "=")
		if _, twice := vars[key]; !ok || key == "" || twice {
			return nil, exit.New(exit.Usage, "--var %q is not KEY=VALUE, or its key was given before", oneLine(p)).
				Hint("for example --var turnId=7")
		}
		vars[key] = value
	}
	return vars, nil
}

func emit(c *cli.Context, r *state.Record, req control.EventRequest) error {
	client := control.NewClient(r.SocketPath())
	limit := c.Duration("timeout")
	if req.NoWait {
		limit = 0
	}
	ctx, cancel := client.Patient(c.Context, limit)
	defer cancel()
	stop := progress.Show(ctx, r.SocketPath())
	res, err := client.Event(ctx, req)
	stop()
	if err != nil {
		return err
	}
	return reportEvent(c, res)
}

// reportEvent prints the result of an event or a verb, and returns its exit code.
func reportEvent(c *cli.Context, res control.EventResult) error {
	if c.Bool("json") {
		if err := printJSON(c.App.Writer, res); err != nil {
			return err
		}
		return silent(exit.Code(res.Exit))
	}
	fmt.Fprintln(c.App.Writer, statustext.Event(res))
	printEach(c.App.ErrWriter, "note: conflict, modified locally and on the remote: ", res.ConflictPaths)
	printEach(c.App.ErrWriter, "note: a pull is put off: ", res.PutOff)
	printNotes(c, res.Notes)
	if len(res.Failed) == 0 { // else the failures are the reason
		printEach(c.App.ErrWriter, "note: in the background, ", res.Failing)
	}
	printEach(c.App.ErrWriter, "wsmount: ", res.Failed)
	if hint := statustext.EventHint(res); hint != "" {
		fmt.Fprintf(c.App.ErrWriter, "hint: %s\n", hint)
	}
	return silent(exit.Code(res.Exit))
}

func follow(c *cli.Context, r *state.Record, name string) error {
	out := json.NewEncoder(c.App.Writer)
	err := control.NewClient(r.SocketPath()).Follow(c.Context, name, func(e lifecycle.Event) error {
		return out.Encode(exactjson.Escape(e))
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if s, ok := unmount.LastStatus(r); ok && s.State == control.Stopped { // it ended, and did not wait for a slow reader
		return nil
	}
	return exit.New(exit.Unreachable, "the daemon of %s (pid %d) has ended without unmounting: events may be missing", r.Mountpoint, r.PID).
		Hint("mount it again; `wsmount status` says what was left")
}
