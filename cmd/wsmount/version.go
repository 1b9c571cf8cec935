package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
)

// version is set by the linker for releases.
var version = ""

// versionInfo is the output of `wsmount version --json`.
type versionInfo struct {
	Schema    string   `json:"schema"` // wsmount.version/v1
	Version   string   `json:"version"`
	Revision  string   `json:"revision,omitempty"`
	Modified  bool     `json:"modified,omitempty"`
	Go        string   `json:"go"`
	Platform  string   `json:"platform"`
	Providers []string `json:"providers"` // that this build can mount
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "say which wsmount this is, and what it can mount",
		Action: func(c *cli.Context) error {
			if _, err := wantArgs(c, 0, 0); err != nil {
				return err
			}
			return printVersion(c.App.Writer, c.Bool("json"))
		},
	}
}

func printVersion(w io.Writer, asJSON bool) error {
	v := readVersion()
	if asJSON {
		return printJSON(w, v)
	}
	fmt.Fprintf(w, "wsmount %s", v.Version)
	if v.Revision != "" {
		fmt.Fprintf(w, " (%.12s)", v.Revision)
	}
	_, err := fmt.Fprintf(w, " %s %s\nproviders: %s\n", v.Go, v.Platform, strings.Join(v.Providers, ", "))
	return err
}

func readVersion() versionInfo {
	v := versionInfo{Schema: "wsmount.version/v1", Version: version, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Providers: daemon.MountableProviders()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	if v.Version == "" || v.Version == "(devel)" {
		v.Version = "development"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
