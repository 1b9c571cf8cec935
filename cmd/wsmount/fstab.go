package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
)

// helperName is the name under which mount(8) runs this program for file
// systems of type wsmount, so that fstab and `mount -t wsmount` work.
const helperName = "mount.wsmount"

// calledAsHelper reports whether mount(8) called.
func calledAsHelper(arg0 string) bool { return filepath.Base(arg0) == helperName }

// helperWords turns what mount(8) passes to a helper (SOURCE DIR [-sfnv]
// [-N NAMESPACE] [-o OPTIONS] [-t TYPE], mount(8) "External helpers") into a
// command line of ours. fake says that nothing is to be done.
func helperWords(words []string) (out []string, fake bool) {
	out = []string{"mount"}
	for i := 0; i < len(words); i++ {
		switch w := words[i]; w {
		case "-N", "-t":
			i++
		case "-f":
			fake = true
		case "-s", "-n", "-v":
		case "-o":
			if i+1 < len(words) {
				i++
				out = append(out, "-o="+words[i])
			}
		default:
			out = append(out, w)
		}
	}
	return out, fake
}

// helperExit is what mount(8) expects of a helper: 1 for a wrong call, 32 for a
// mount that failed.
func helperExit(c exit.Code) int {
	switch c {
	case exit.Done:
		return 0
	case exit.Usage:
		return 1
	}
	return 32
}

// Options of -o, by what becomes of them.
var (
	optionSwitches = map[string]string{"ro": "read-only", "allow_other": "allow-other", "read-only": "read-only",
		"allow-other": "allow-other", "trust": "trust", "if-not-mounted": "if-not-mounted",
		"require-durable": "require-durable", "write-back": "write-back", "map-ids": "map-ids", "no-passthrough": "no-passthrough"}
	optionValues = []string{"config", "state-dir", "stop-timeout", "control-dir", "metrics-addr", "log-file", "log-level", "log-format",
		"working-copy", "cache-size", "patience", "uid", "gid", "umask"}

	// kernelOptions are passed on.
	kernelOptions = []string{"nosuid", "suid", "nodev", "dev", "noexec", "exec", "noatime"}

	// fstabOptions are for mount(8) and systemd, and mean nothing here.
	fstabOptions = []string{"defaults", "rw", "auto", "noauto", "user", "users", "nouser", "owner", "group", "nofail",
		"_netdev", "relatime", "norelatime", "strictatime", "atime", "diratime", "nodiratime", "async", "sync"}
)

// applyOptions does what -o says: most options are the flags of the same name.
// It returns those that the kernel gets.
func applyOptions(c *cli.Context) (kernel []string, err error) {
	for _, list := range c.StringSlice("options") {
		for _, option := range strings.Split(list, ",") {
			name, value, hasValue := strings.Cut(option, "=")
			flag, isSwitch := optionSwitches[name]
			switch {
			case isSwitch && !hasValue:
				err = c.Set(flag, "true")
			case hasValue && slices.Contains(optionValues, name):
				err = c.Set(name, value)
			case slices.Contains(kernelOptions, option):
				kernel = append(kernel, option)
			case option == "", slices.Contains(fstabOptions, option), strings.HasPrefix(name, "x-"), name == "comment":
			default:
				return nil, unknownOption(option)
			}
			if err != nil {
				return nil, exit.New(exit.Usage, "-o %s: %w", oneLine(option), err).Hint("see `wsmount mount --help`")
			}
		}
	}
	return kernel, nil
}

func unknownOption(option string) error {
	name, _, _ := strings.Cut(option, "=")
	known := slices.Concat(optionValues, kernelOptions, fstabOptions)
	for o := range optionSwitches {
		known = append(known, o)
	}
	slices.Sort(known)
	e := exit.New(exit.Usage, "unknown option -o %s", oneLine(option))
	return e.Hint("%s", orNothing(suggest.Phrase(name, known), "see `wsmount mount --help`"))
}
