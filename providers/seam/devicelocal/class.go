package devicelocal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/localdir"
	"github.com/wsmount/wsmount/providers/seam"
)

// Class opens the user's own memory, ~/.agentm/memory.
func Class() seam.Class {
	return seam.Class{
		Dir:  memoryOf,
		Look: func(_ context.Context, s seam.Settings) providers.Finding { return look(s) },
		Open: func(ctx context.Context, s seam.Settings) (seam.Backend, error) {
			if !filepath.IsAbs(s.Home) {
				return nil, errNoHome // else it would be in the program's working directory
			}
			b, err := Open(memoryOf(s))
			if err != nil {
				return nil, err // a nil *Backend would be no nil
			}
			return s.Through(ctx, memoryOf(s), b, nil)
		},
	}
}

var errNoHome = errors.New("there is no home directory")

func memoryOf(s seam.Settings) string { return filepath.Join(s.Home, ".agentm", "memory") }

// look finds out whether the directory is there or can be made.
func look(s seam.Settings) providers.Finding {
	f := providers.Finding{Name: Protocol}
	bad := func(do, format string, args ...any) providers.Finding {
		f.Grade, f.Says, f.Do = providers.Bad, fmt.Sprintf(format, args...), do
		return f
	}
	if !filepath.IsAbs(s.Home) {
		return bad("set $HOME", "%v", errNoHome)
	}
	dir := memoryOf(s)
	at, info, err := localdir.Nearest(dir)
	switch {
	case err != nil:
		return bad("let it be reached", "%s cannot be reached: %v", at, err)
	case !info.IsDir():
		return bad("move it away", "%s is no directory", at)
	}
	err = localdir.CheckWritable(at)
	switch {
	case err != nil && at != dir:
		return bad("let it be written", "%s cannot be made: %v", dir, err)
	case err != nil:
		f.Grade, f.Says, f.Do = providers.Less, fmt.Sprintf("files in %s, which cannot be written: %v", dir, err), "let it be written"
	case at != dir:
		f.Says = fmt.Sprintf("files in %s, which will be made", dir)
	default:
		f.Says = "files in " + dir
	}
	return f
}
