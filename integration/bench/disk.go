package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// An ext4 without a journal, as images of virtual machines have, goes past every
// inode that was deleted in the last minutes when it makes a file (recently_deleted
// in fs/ext4/ialloc.c): a create took 0.01 or 0.9 ms there, by what had been removed
// before, which measures the neighbours. Nobody keeps his work on such a disk.

// diskSize is of the image, which takes what is written to it.
const diskSize = 64 << 30

// onJournal has everything measured on a disk with a journal: where -dir has none,
// in an ext4 in a file there. done unmounts and removes it.
func (o *options) onJournal(ctx context.Context) (done func() error, err error) {
	done = func() error { return nil }
	plain, err := lacksJournal(o.dir)
	if err != nil || !plain {
		return done, err
	}
	if os.Geteuid() != 0 {
		fmt.Fprintf(os.Stderr, "bench: the disk under %s has no journal, and what creates cost there depends on what was removed lately; as root it is measured in an image\n", o.dir)
		return done, nil
	}
	image, mnt, err := makeDisk(ctx, o.dir)
	if err != nil {
		return done, err
	}
	o.dir = mnt
	return func() error {
		err := runTool(context.WithoutCancel(ctx), "umount", "-d", mnt)
		return errors.Join(err, os.Remove(mnt), os.Remove(image))
	}, nil
}

// lacksJournal reports whether a directory is on an ext4 without one.
func lacksJournal(dir string) (bool, error) {
	var fs unix.Statfs_t
	var st unix.Stat_t
	if err := errors.Join(unix.Statfs(dir, &fs), unix.Stat(dir, &st)); err != nil {
		return false, fmt.Errorf("%s: %w", dir, err)
	}
	if fs.Type != unix.EXT4_SUPER_MAGIC {
		return false, nil
	}
	device, err := filepath.EvalSymlinks(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)))
	if err != nil {
		return false, nil // not of one device: nothing is known of its journal
	}
	if _, err := os.Stat("/proc/fs/ext4/" + filepath.Base(device)); err != nil {
		return false, nil // nor where the kernel does not tell
	}
	journals, err := filepath.Glob("/proc/fs/jbd2/" + filepath.Base(device) + "-*")
	return len(journals) == 0, err
}

// makeDisk makes a sparse image in a directory, and mounts it beside.
func makeDisk(ctx context.Context, dir string) (image, mnt string, err error) {
	f, err := os.CreateTemp(dir, "wsmount-bench-disk-")
	if err != nil {
		return "", "", err
	}
	image = f.Name()
	mnt = image + ".mnt"
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(image))
			_ = os.Remove(mnt)
		}
	}()
	if err := errors.Join(f.Truncate(diskSize), f.Close(), os.Mkdir(mnt, 0o755)); err != nil {
		return "", "", err
	}
	if err := runTool(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", image); err != nil {
		return "", "", err
	}
	out, err := exec.CommandContext(ctx, "losetup", "--find", "--show", "--direct-io=on", image).Output()
	if err != nil {
		return "", "", fmt.Errorf("losetup %s: %w", image, err)
	}
	device := strings.TrimSpace(string(out))
	// Its inode tables are not to be written while something is measured.
	if err := runTool(ctx, "mount", "-o", "noinit_itable", device, mnt); err != nil {
		return "", "", errors.Join(err, runTool(ctx, "losetup", "-d", device))
	}
	if err := os.Chmod(mnt, 0o777|os.ModeSticky); err != nil {
		return "", "", errors.Join(err, runTool(ctx, "umount", "-d", mnt))
	}
	return image, mnt, nil
}

// runTool runs a program, whose words are in the error.
func runTool(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strconv.Quote(name+" "+strings.Join(args, " ")), err, strings.TrimSpace(string(out)))
	}
	return nil
}
