package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
)

// Options of -o and of fstab, by their treatment.
var (
	// switchOptions and valueOptions are the flags of mount of the same name.
	switchOptions = []string{"read-only", "allow-other", "trust", "if-not-mounted", "require-durable", "write-back",
		"map-ids", "no-passthrough", "debug-fuse"}
	valueOptions = []string{"config", "state-dir", "stop-timeout", "control-dir", "sandbox-mount", "metrics-addr", "log-file", "log-level", "log-format",
		"operator", "working-copy", "cache-size", "total-cache-size", "keep-free", "patience", "uid", "gid", "umask"}

	// kernelOptions are passed on.
	kernelOptions = []string{"nosuid", "suid", "nodev", "dev", "noexec", "exec", "noatime"}

	// fstabOptions are for mount(8) and systemd; wsmount ignores them.
	fstabOptions = []string{"defaults", "auto", "noauto", "user", "users", "nouser", "nousers", "owner", "noowner", "group", "nogroup",
		"nofail", "_netdev", "relatime", "norelatime", "strictatime", "nostrictatime", "lazytime", "nolazytime", "atime", "diratime",
		"nodiratime", "async", "sync", "dirsync", "silent", "loud", "sloppy"}

	// fstabNames are options of the same kind that have a value. mount(8) adds
	// user=NAME when an unprivileged user mounts.
	fstabNames = []string{"user", "comment", "fstype"}
)

// applyOptions applies -o to the flags, and returns the options for the kernel. As
// for mount(8), of ro and rw the last counts; --read-only stays. With sloppy, which
// is mount -s, an unknown option is ignored.
func applyOptions(c *cli.Context) (kernel []string, err error) {
	options := strings.Split(strings.Join(c.StringSlice("options"), ","), ",")
	sloppy, readOnly := slices.Contains(options, "sloppy"), false
	for _, option := range options {
		name, value, hasValue := strings.Cut(option, "=")
		flag := strings.ReplaceAll(name, "_", "-") // as FUSE spells allow_other
		switch {
		case option == "ro", option == "rw":
			readOnly = option == "ro"
		case slices.Contains(kernelOptions, option):
			kernel = append(kernel, option)
		case ignoredOption(name, option):
		case slices.Contains(switchOptions, flag) && !hasValue:
			err = c.Set(flag, "true")
		case slices.Contains(valueOptions, flag) && hasValue:
			err = c.Set(flag, value)
		case option == "remount":
			err = exit.New(exit.Usage, "a workspace cannot be remounted").Hint("umount it, and mount it with other options")
		case !sloppy:
			err = unknownOption(option)
		}
		if err != nil {
			return nil, optionError(option, err)
		}
	}
	if readOnly {
		err = c.Set("read-only", "true")
	}
	return kernel, err
}

// ignoredOption reports whether an option is not for wsmount.
func ignoredOption(name, option string) bool {
	return option == "" || slices.Contains(fstabOptions, option) || name != option && slices.Contains(fstabNames, name) ||
		strings.HasPrefix(option, "x-") || strings.HasPrefix(option, "X-")
}

func optionError(option string, err error) error {
	if e := exit.From(err); e.Code == exit.Usage {
		return e
	}
	return exit.New(exit.Usage, "-o %s: %w", oneLine(option), err).Hint("see `wsmount mount --help`")
}

func unknownOption(option string) error {
	name, _, _ := strings.Cut(option, "=")
	known := slices.Concat([]string{"ro", "rw", "allow_other"}, switchOptions, valueOptions, kernelOptions, fstabOptions)
	e := exit.New(exit.Usage, "unknown option -o %s", oneLine(option))
	return e.Hint("%s", orNothing(suggest.Phrase(name, known), "see `wsmount mount --help`"))
}
