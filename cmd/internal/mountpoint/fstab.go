package mountpoint

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// NoteHelper lets mount(8) note in its own table (/run/mount/utab) that
// umount.wsmount takes this mount away. Root's umount(8) asks the kernel for the type of
// a mount point when its table has no entry of it; the kernel says "fuse", so no
// helper is found, and umount returns before everything is safe. For mounts of other
// users it reads /proc/self/mountinfo, which says fuse.wsmount.
func NoteHelper(ctx context.Context, source, dir string) error {
	out, err := exec.CommandContext(ctx, "mount", "--fake", "--internal-only", "-t", FSType,
		"-o", "uhelper=wsmount", "--", source, dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mount(8) does not note how it is unmounted, so unmount it with `wsmount umount`: %w %s", err, strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}

// FstabOption is the value of an option in the line of an fstab(5) that mounts a
// workspace at dir, or "". umount(8) passes no options on.
func FstabOption(fstab, dir, want string) string {
	for line := range strings.Lines(fstab) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !slices.Contains([]string{"wsmount", FSType}, fields[2]) || filepath.Clean(Unescape(fields[1])) != filepath.Clean(dir) {
			continue
		}
		for _, option := range strings.Split(Unescape(fields[3]), ",") {
			name, value, _ := strings.Cut(option, "=")
			if strings.ReplaceAll(name, "_", "-") == want {
				return value
			}
		}
	}
	return ""
}
