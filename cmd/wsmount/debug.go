package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/state"
)

// bundledLog is how much of the end of each log a bundle takes.
const bundledLog = 4 << 20

func debugCommand() *cli.Command {
	return &cli.Command{
		Name:      "debug",
		Usage:     "collect what a bug report needs, without secrets",
		ArgsUsage: "MOUNTPOINT",
		Description: "Writes a .tar.gz with the mount's status, configuration, counters, metrics, goroutines " +
			"and logs. It holds names of files and workspaces, and no content, credential or " +
			"environment. Also works on a daemon that does not answer.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to this `FILE`, - for standard output"},
		},
		Action: debugAction,
	}
}

func debugAction(c *cli.Context) error {
	args, err := wantArgs(c, 1, 1)
	if err != nil {
		return err
	}
	r, err := findMount(c, args[0])
	if err != nil {
		return err
	}
	name := c.String("output")
	if name == "-" {
		return writeBundle(c.Context, c.App.Writer, r)
	}
	if name == "" {
		name = "wsmount-debug-" + time.Now().UTC().Format("20060102-150405") + ".tar.gz"
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return exit.New(exit.Failed, "%w", err).Hint("give another name with --output")
	}
	if err := errors.Join(writeBundle(c.Context, f, r), f.Close()); err != nil {
		os.Remove(name)
		return err
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, struct {
			Schema string `json:"schema"`
			File   string `json:"file"`
		}{"wsmount.bundle/v1", name})
	}
	_, err = fmt.Fprintln(c.App.Writer, name)
	return err
}

// bundle writes one file after another into a compressed archive.
type bundle struct {
	tar *tar.Writer
	now time.Time
}

func (b *bundle) add(name string, content []byte) error {
	h := &tar.Header{Name: "wsmount-debug/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: b.now}
	if err := b.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	_, err := b.tar.Write(content)
	return err
}

func (b *bundle) addJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return b.add(name, append(text, '\n'))
}

// writeBundle collects what can be had. What cannot is said in the bundle: a
// hung daemon is when one is wanted most.
func writeBundle(ctx context.Context, w io.Writer, r *state.Record) error {
	zip := gzip.NewWriter(w)
	b := &bundle{tar: tar.NewWriter(zip), now: time.Now()}
	err := errors.Join(
		b.addJSON("version.json", readVersion()),
		b.addJSON("mount.json", r),
		b.addJSON("status.json", mounts.Look(ctx, r)),
		b.add("machine.txt", machine()),
		b.daemon(ctx, r),
		b.log("log", orNothing(r.Log, filepath.Join(r.Dir, "log"))),
		b.log("crash.log", filepath.Join(r.Dir, "crash.log")),
	)
	return errors.Join(err, b.tar.Close(), zip.Close())
}

// daemon adds what only the daemon knows.
func (b *bundle) daemon(ctx context.Context, r *state.Record) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client := control.NewClient(r.SocketPath())
	d, err := client.Debug(ctx)
	if err != nil {
		return b.add("daemon.txt", []byte(err.Error()+"\n"))
	}
	metrics, err := client.Metrics(ctx)
	if err != nil {
		metrics = []byte(err.Error() + "\n")
	}
	return errors.Join(b.addJSON("stats.json", d.Stats), b.addJSON("config.json", d.Config),
		b.add("goroutines.txt", []byte(d.Goroutines)), b.add("metrics.txt", metrics))
}

// log adds the end of a log file, if there is one.
func (b *bundle) log(name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return b.add(name, []byte(err.Error()+"\n"))
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, fi.Size()-bundledLog), bundledLog))
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return b.add(name, text)
}

// machine is the kernel and the mount table.
func machine() []byte {
	var u unix.Utsname
	unix.Uname(&u)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		mounts = []byte(err.Error())
	}
	return fmt.Appendf(nil, "%s %s %s\n\n%s", unix.ByteSliceToString(u.Sysname[:]),
		unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]), mounts)
}
