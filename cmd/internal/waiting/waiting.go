// Package waiting tells a person at a terminal the reason of a long wait.
//
//	defer waiting.For("mounting @acme/ops")()
package waiting

import (
	"fmt"
	"os"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/sandbox"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
)

// tellAfter is how long a person waits without being told the reason.
const tellAfter = time.Second

// For prints a reason when the wait has lasted a second, unless it is done by then. Without
// a terminal it does nothing.
func For(what string) (done func()) {
	if !sandbox.IsTerminal(os.Stderr) {
		return func() {}
	}
	t := time.AfterFunc(tellAfter, func() { fmt.Fprintf(os.Stderr, "wsmount: %s ...\n", wrap.OneLine(what)) })
	return func() { t.Stop() }
}
