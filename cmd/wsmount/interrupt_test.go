package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
)

// An impatient Ctrl-C, at any moment of a start: either the mount is there, and
// the program said so, or nothing is left. The pauses choose the moment; no
// outcome depends on them.
func TestInterruptWhileStarting(t *testing.T) {
	needFUSE(t)
	w := newWorld(t)
	addr := w.workspace("notes")
	w.mkdir("mnt")
	for pause := time.Duration(0); pause < 80*time.Millisecond; pause += 2 * time.Millisecond {
		cmd := w.command(addr, w.path("mnt"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause)
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.Exited() && status.ExitStatus() == 0 {
			w.ok("umount", "mnt")
			continue
		}
		gone := func() bool {
			table, err := mountpoint.ReadTable()
			if err != nil {
				t.Fatal(err)
			}
			_, mounted := table.At(w.path("mnt"))
			return !mounted
		}
		eventually(t, "the mount to go after an interrupt at "+pause.String(), gone)
	}
}
