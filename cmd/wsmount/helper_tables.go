package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
)

// noteForUmount lets mount(8) note in its own table (/run/mount/utab) that
// umount.wsmount takes this mount away. Root's umount(8) asks the kernel what a
// mount point is when its table knows nothing of it; the kernel says "fuse", so no
// helper is found, and umount returns before everything is safe. For what users
// mounted it reads /proc/self/mountinfo, which says fuse.wsmount.
func noteForUmount(ctx context.Context, source, dir string) error {
	out, err := exec.CommandContext(ctx, "mount", "--fake", "--internal-only", "-t", mountpoint.FSType,
		"-o", "uhelper=wsmount", "--", source, dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mount(8) does not note how it is unmounted, so unmount it with `wsmount umount`: %w %s", err, oneLine(string(out)))
	}
	return nil
}

// fstabFile is what mount(8) reads (fstab(5)).
const fstabFile = "/etc/fstab"

// stateOfFstab returns the state directory that a line of fstab gives the mount at
// dir, or "". umount(8) passes no options on.
func stateOfFstab(fstab, dir string) string {
	for line := range strings.Lines(fstab) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !slices.Contains([]string{"wsmount", mountpoint.FSType}, fields[2]) || filepath.Clean(mountpoint.Unescape(fields[1])) != filepath.Clean(dir) {
			continue
		}
		for _, option := range strings.Split(mountpoint.Unescape(fields[3]), ",") {
			name, value, _ := strings.Cut(option, "=")
			if strings.ReplaceAll(name, "_", "-") == "state-dir" {
				return value
			}
		}
	}
	return ""
}

// withState is the command line of an umount, with the state directory that
// fstab gives the mount where the environment has none.
func withState(call helperCall) ([]string, error) {
	if os.Getenv("WSMOUNT_STATE_DIR") != "" || len(call.places) != 1 {
		return call.words, nil
	}
	fstab, err := os.ReadFile(fstabFile)
	if err != nil && !os.IsNotExist(err) {
		return nil, exit.New(exit.Failed, "%w", err)
	}
	if dir := stateOfFstab(string(fstab), call.places[0]); dir != "" {
		return slices.Concat(call.words, []string{"--state-dir=" + dir}), nil
	}
	return call.words, nil
}
