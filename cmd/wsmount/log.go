package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/bytesize"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/past"
	"github.com/wsmount/wsmount/cmd/internal/screen"
)

func logCommand() *cli.Command {
	return &cli.Command{
		Name:      "log",
		Usage:     "show the history of files",
		ArgsUsage: "MOUNTPOINT [PATH]",
		Description: "Lists what became of the files of a mount, or of those at and below a path, the newest " +
			"first: created, changed, removed, replaced, renamed, or pulled from the store; earlier is what was there before a program first changed it. " +
			"The first column names a version for diff and restore; a version marked - is known, " +
			"but its content is not kept locally; restore asks the versions of a bucket for it.\n\n" +
			"  wsmount log /mnt/ws docs/plan.md\n" +
			"  wsmount log /mnt/ws --turn 7 --since 2h",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "since", Usage: "from this `TIME` on: 2026-11-20, '2026-11-20 15:04', RFC 3339, or 2h for two hours ago"},
			&cli.StringFlag{Name: "until", Usage: "up to this `TIME`"},
			&cli.StringFlag{Name: "event", Usage: "of this lifecycle `EVENT`"},
			&cli.StringFlag{Name: "turn", Usage: "of the turn `ID`"},
			&cli.StringFlag{Name: "conversation", Usage: "of the conversation `ID`"},
			&cli.StringFlag{Name: "commit", Usage: "that went into the commit `NAME`: four characters of it or more"},
			&cli.IntFlag{Name: "n", Value: 50, Usage: "at most this `NUMBER` of them; 0: all"},
		},
		Action: logAction,
	}
}

func logAction(c *cli.Context) error {
	args, err := wantArgs(c, 1, 2)
	if err != nil {
		return err
	}
	req := control.LogRequest{Event: c.String("event"), Turn: c.String("turn"), Conversation: c.String("conversation"), Commit: c.String("commit"), Limit: c.Int("n")}
	if req.Limit < 0 {
		return exit.New(exit.Usage, "-n cannot be negative").Hint("for example -n 20, or -n 0 for all")
	}
	if req.Since, err = past.Time("--since", c.String("since"), time.Now()); err != nil {
		return err
	}
	if req.Until, err = past.Time("--until", c.String("until"), time.Now()); err != nil {
		return err
	}
	r, rel, err := target(c, args)
	if err != nil {
		return err
	}
	req.Path = rel
	res, err := control.NewClient(r.SocketPath()).Log(c.Context, req)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, res)
	}
	printNotes(c, res.Notes)
	if len(res.Versions) == 0 && req.Commit != "" {
		fmt.Fprintf(c.App.Writer, "no local change went into %s: `wsmount diff %s --commit %[1]s` shows what it changed\n",
			oneLine(req.Commit), r.Mountpoint)
		return nil
	}
	printLog(c.App.Writer, res.Versions)
	return nil
}

func printLog(w io.Writer, versions []cache.Version) {
	if len(versions) == 0 {
		fmt.Fprintln(w, "nothing is known")
		return
	}
	out := screen.Of(w)
	for _, v := range versions {
		id := v.ID
		if !v.Kept && v.Change != cache.Moved && v.Change != cache.Made {
			id += "-"
		}
		word, reason := past.Change(v)
		cells := []string{fmt.Sprintf("%-8s", id), v.Time.Local().Format(time.DateTime), out.Paint(changes[word], fmt.Sprintf("%-8s", word)),
			fmt.Sprintf("%9s", bytesize.Text(v.Size)), oneLine(past.Path(v))}
		by := oneLine(past.By(v, reason))
		if by != "" && out.Width == 0 { // a line for each, for programs that read lines
			cells, by = append(cells, "("+by+")"), ""
		}
		out.Flow(9, cells...)
		if by != "" {
			out.Wrapped(strings.Repeat(" ", 9), 9, by)
		}
	}
}

var changes = map[string]screen.Colour{past.Created: screen.Good, past.Changed: screen.Warn, past.Removed: screen.Bad, past.Replaced: screen.Bad, past.Pulled: screen.Known}
