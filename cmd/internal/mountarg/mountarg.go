// Package mountarg reads the value of --mount: a further workspace in the tree of a mount.
//
//	mounts, err := mountarg.Parse([]string{"at=/lib,source=@acme/lib,mode=read-only"})
package mountarg

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
	"github.com/wsmount/wsmount/mountspec"
)

// Parse reads --mount at=/x,source=@a/b[,mode=read-only][,optional]. A
// comma cannot be part of a value.
func Parse(specs []string) ([]mountspec.Mount, error) {
	var out []mountspec.Mount
	for _, spec := range specs {
		m, err := one(spec)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

var keys = []string{"at", "source", "mode", "optional"}

func one(spec string) (mountspec.Mount, error) {
	m := mountspec.Mount{Mode: mountspec.MountReadWrite, Pos: mountspec.Pos{File: "--mount"}}
	bad := func(format string, args ...any) (mountspec.Mount, error) {
		return m, exit.New(exit.Usage, "--mount %q: %s", wrap.OneLine(spec), fmt.Sprintf(format, args...)).
			Hint("for example --mount at=/lib,source=@acme/lib,mode=read-only")
	}
	seen := map[string]bool{}
	for _, field := range strings.Split(spec, ",") {
		key, value, hasValue := strings.Cut(field, "=")
		if seen[key] {
			return bad("%s is given twice", key)
		}
		seen[key] = true
		switch {
		case key == "at" && strings.HasPrefix(value, "/"):
			if err := mountspec.CheckMountPoint(value); err != nil {
				return bad("at: %v", err)
			}
			m.At = value
		case key == "source" && filepath.IsAbs(value): // only here is a path the user's own word
			m.Source = mountspec.Ref{Kind: mountspec.RefPath, Value: value}
		case key == "source" && value != "":
			ref, err := mountspec.ParseRef(value)
			if err != nil {
				return bad("%v", err)
			}
			m.Source = ref
		case key == "mode" && (value == string(mountspec.MountReadOnly) || value == string(mountspec.MountReadWrite)):
			m.Mode = mountspec.MountMode(value)
		case key == "optional" && (!hasValue || value == "true" || value == "false"):
			m.Optional = value != "false"
		case len(suggest.Near(key, keys)) > 0 && suggest.Near(key, keys)[0] != key:
			return bad("unknown key %q, %s", key, suggest.Phrase(key, keys))
		default:
			return bad("%q is not understood", field)
		}
	}
	if m.At == "" || m.Source.Value == "" {
		return bad("at and source are needed")
	}
	return m, nil
}
