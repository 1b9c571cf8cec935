package daemon

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/told"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
)

// Refusal turns an error of mountspec and its packages into one with an exit
// code and a hint.
func Refusal(err error) *exit.Error {
	var e *host.Error
	if !errors.As(err, &e) {
		return exit.From(err)
	}
	out := &exit.Error{Code: exit.Code(e.ExitCode()), What: e.Error(), Advice: e.Hint, Err: err, Details: skipped(e.Skipped)}
	if e.Err != nil {
		told.Secrets(out, e.Err)
	}
	if MachineFailed(err) {
		out.Code = exit.Failed
		var told *exit.Error // of a full disk, with its advice
		if errors.As(err, &told) && told.Advice != "" {
			out.Advice = told.Advice
		}
	}
	var found mountspec.Findings
	if !errors.As(err, &found) || len(found) == 0 {
		return out
	}
	out.What = found[0].String()
	if hint := found[0].Hint; hint != "" {
		out.What, out.Advice = strings.TrimSuffix(out.What, "; "+hint), hint
	}
	if len(found) > 1 {
		out.What += fmt.Sprintf(" (and %d more)", len(found)-1)
		out.Advice = seeAll(found)
	}
	return out
}

// maxDetails is how many lines an error has besides its own.
const maxDetails = 10

// skipped lists the skipped paths, with their reasons, up to maxDetails.
func skipped(list []string) []string {
	var out []string
	for _, s := range list[:min(len(list), maxDetails)] {
		out = append(out, "skipped "+s)
	}
	if more := len(list) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more, see `wsmount resolve --explain`", more))
	}
	return out
}

// MachineFailed reports whether an error comes from the machine, such as a full
// disk under the audit log, rather than from a manifest or a grant.
func MachineFailed(err error) bool {
	of := []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}
	return slices.ContainsFunc(of, func(e error) bool { return errors.Is(err, e) })
}

// seeAll says where to see the rest of several findings. For a file whose kind `wsmount
// validate` cannot tell by its name, it names the lines.
func seeAll(found mountspec.Findings) string {
	file := found[0].File
	if slices.Contains([]string{".md", ".yaml", ".yml"}, filepath.Ext(file)) {
		return "`wsmount validate " + file + "` shows all of them"
	}
	var lines []string
	for _, f := range found {
		if line := strconv.Itoa(f.Line); f.Line > 0 && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "correct " + file
	}
	return "correct " + file + " at line " + strings.Join(lines, ", ")
}
