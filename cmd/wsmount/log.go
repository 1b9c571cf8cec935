package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/bytesize"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/past"
)

func logCommand() *cli.Command {
	return &cli.Command{
		Name:      "log",
		Usage:     "show the history of files",
		ArgsUsage: "MOUNTPOINT [PATH]",
		Description: "Lists what became of the files of a mount, or of those at and below a path, the newest " +
			"first. The first column names a version for diff and restore; a version marked - is known, " +
			"but its content was not kept here; restore asks the versions of a bucket for it.\n\n" +
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
	for _, v := range versions {
		fmt.Fprintf(w, "%-8s %s %-7s %9s  %s\n", v.ID+map[bool]string{true: "", false: "-"}[v.Kept || v.Change == cache.Moved || v.Change == cache.Made],
			v.Time.Local().Format("2006-01-02 15:04:05"), v.Change, bytesize.Text(v.Size), clip(oneLine(versionPath(v)), width-48))
		if by := versionActor(v); by != "" {
			fmt.Fprintf(w, "%9s%s\n", "", clip(oneLine(by), width-9))
		}
	}
}

func versionPath(v cache.Version) string {
	switch {
	case v.Change == cache.Moved && v.From != "":
		return v.From + " -> " + orNothing(v.Was, v.Path)
	case v.Was != "":
		return v.Was
	}
	return v.Path
}

// shortCommit is enough of a commit's name to find it.
func shortCommit(name string) string { return name[:min(len(name), 10)] }

// versionActor says on whose behalf a version came about.
func versionActor(v cache.Version) string {
	text := ""
	for _, f := range []struct{ name, value string }{
		{"why", v.Why}, {"commit", shortCommit(v.Commit)}, {"by", v.Name}, {"event", v.Event}, {"turn", v.Turn}, {"conversation", v.Conversation}, {"command", v.Command}} {
		if f.value != "" {
			text += ", " + f.name + " " + f.value
		}
	}
	if text == "" {
		return ""
	}
	return text[2:]
}
