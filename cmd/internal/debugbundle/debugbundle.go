// Package debugbundle collects data for a bug report into a .tar.gz: names of files and
// workspaces, and no content, credential or environment.
//
//	err := debugbundle.Write(ctx, w, record, version)
package debugbundle

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/state"
)

// bundledLog is how many bytes of the end of each log a bundle takes.
const bundledLog = 4 << 20

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
	text, err := exactjson.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return b.add(name, append(text, '\n'))
}

// Write collects all available data of a mount, and the version of the program. Missing parts
// are named in the bundle: it is wanted most when a daemon hangs.
func Write(ctx context.Context, w io.Writer, r *state.Record, version any) error {
	zip := gzip.NewWriter(w)
	b := &bundle{tar: tar.NewWriter(zip), now: time.Now()}
	err := errors.Join(
		b.addJSON("version.json", version),
		b.addJSON("mount.json", r),
		b.addJSON("status.json", mounts.Look(ctx, r)),
		b.add("machine.txt", machine()),
		b.daemon(ctx, r),
		b.log("log", cmp.Or(r.Log, filepath.Join(r.Dir, "log"))),
		b.log("crash.log", filepath.Join(r.Dir, "crash.log")),
	)
	return errors.Join(err, b.tar.Close(), zip.Close())
}

// daemon adds the data that only the daemon has.
func (b *bundle) daemon(ctx context.Context, r *state.Record) error {
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
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		table = []byte(err.Error())
	}
	return fmt.Appendf(nil, "%s %s %s\n\n%s", unix.ByteSliceToString(u.Sysname[:]),
		unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]), table)
}
