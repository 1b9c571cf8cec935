// Package readme has the lines of .wsmount/README that depend on nothing but a policy.
package readme

import "github.com/wsmount/wsmount/cache"

// Failures says where an agent learns why something failed.
var Failures = []string{
	"errors.log     a line for each failure, the newest last: time, operation, path,",
	"               the error that the program got, the reason; before them, after a",
	"               #, the work in the background that fails until now",
	"status.json    the state of all this as it is now",
}

// Waiting says where the agent learns of unsent changes.
const Waiting = "What the store does not have yet is in the file unsent; when that is empty, it has all."

var (
	split = []string{"Both are kept: theirs has the name, and yours is beside it under another,",
		"NAME.conflict-HASH.EXT. Put what you need of it into the file, and remove it."}
	held = []string{"yours stays here, is not sent, and both are in",
		"  conflicts/PATH/base, ours, theirs (base: from what both began, if it is known)",
		"To take theirs: cp .wsmount/conflicts/PATH/theirs PATH. To keep yours or both,",
		"ask who runs wsmount: `wsmount conflicts resolve` ends it."}
)

// Conflict says how a file is handled that was changed locally and by others.
func Conflict(p cache.Conflict) []string {
	switch p {
	case cache.LastWriterWins:
		return []string{"When you and others change the same file, yours wins; theirs is in history/."}
	case cache.Abort, cache.Manual:
		return append([]string{"When you and others change the same file,"}, held...)
	case cache.Combine:
		return append([]string{"When you and others change other lines of a file, they are merged; when the same,"}, held...)
	case cache.Markers:
		return append([]string{"When you and others change a file, its lines are merged; where the same lines were",
			"changed, both are in it between <<<<<<< and >>>>>>>. Of what is no text:"}, split...)
	}
	return append([]string{"When you and others change the same file:"}, split...)
}
