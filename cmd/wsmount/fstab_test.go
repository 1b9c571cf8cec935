package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
)

// onOptions calls use where mount would have read -o and some flags.
func onOptions(t *testing.T, options string, use func(*cli.Context) error, flags ...string) {
	t.Helper()
	all := commands()
	called := false
	lookup(all, "mount").Action = func(c *cli.Context) error {
		called = true
		return use(c)
	}
	words := append([]string{"mount", "@a/b", "/mnt", "-o=" + options}, flags...)
	err := perform(t.Context(), all, words, io.Discard, io.Discard)
	assert.True(t, err == nil && called, "-o", options, err)
}

func TestOptions(t *testing.T) {
	tests := []struct {
		name, options string
		flags         string // of the command, that are set by it
		kernel        string
	}{
		{"nothing", "defaults,noauto,user,user=joe,_netdev,nofail,relatime,x-systemd.automount,X-mount.mkdir,comment=a,", "", ""},
		{"read-only", "rw,ro", "read-only=true", ""},
		{"the last counts", "ro,rw", "read-only=false", ""},
		{"a flag", "allow_other,cache-size=1GiB,uid=7", "allow-other=true cache-size=1GiB uid=7", ""},
		{"with underscores", "cache_size=1GiB,write_back", "cache-size=1GiB write-back=true", ""},
		{"the kernel's", "noexec,nosuid,nodev,noatime", "", "noexec nosuid nodev noatime"},
		{"sloppy", "quux,quux=1,sloppy,ro=1,noexec", "", "noexec"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			onOptions(t, tt.options, func(c *cli.Context) error {
				assert.Of(applyOptions(c)).Equal(t, strings.Fields(tt.kernel))
				for _, flag := range strings.Fields(tt.flags) {
					name, want, _ := strings.Cut(flag, "=")
					assert.Equal(t, fmt.Sprint(c.Value(name)), want, name)
				}
				return nil
			})
		})
	}
	onOptions(t, "rw", func(c *cli.Context) error {
		_, err := applyOptions(c)
		assert.True(t, err == nil && c.Bool("read-only"), "-o rw has undone --read-only", err)
		return nil
	}, "--read-only")
}

// Every option that is a flag is one that mount has, of that kind; and every
// flag of mount is an option, but for those that a line of fstab cannot have.
func TestOptionsAreFlags(t *testing.T) {
	kinds := flagKinds([]*cli.Command{lookup(commands(), "mount")})
	for _, name := range switchOptions {
		takes, known := kinds[name]
		assert.True(t, known && !takes, name, "is no switch of mount")
	}
	for _, name := range valueOptions {
		assert.True(t, kinds[name], "mount has no", name, "with a value")
	}
	notOptions := []string{"mount", "options", "foreground", "json"} // commas, itself, and what is for a terminal
	for name := range kinds {
		assert.False(t, len(name) > 1 && !slices.Contains(slices.Concat(switchOptions, valueOptions, notOptions), name), "-o knows nothing of --", name)
	}
}

func TestUnknownOption(t *testing.T) {
	w := newWorld(t)
	addr := w.workspace("notes")
	w.refused(exit.Usage, "unknown option -o alow_other", addr, "mnt", "-o", "ro,alow_other")
	w.refused(exit.Usage, "soon", "@acme/notes", "mnt", "-o", "stop-timeout=soon")
	w.refused(exit.Usage, "unknown option -o ro=1", "@acme/notes", "mnt", "-o", "ro=1")
	w.refused(exit.Usage, "cannot be remounted", "@acme/notes", "mnt", "-o", "remount,ro,sloppy")
	w.refused(exit.Usage, "not a size", "@acme/notes", "mnt", "-o", "sloppy,cache-size=much")
}
