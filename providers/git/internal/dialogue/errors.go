package dialogue

import (
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// Error is the end of a session. Its text is for people, and bounded.
type Error struct {
	Kind error  // of package providers
	Code string // for support: "host-key", "auth", "exit 128"
	Says string
	Do   string // the remedy; "": that of the kind
	Err  error  // the cause; may be nil
}

func (e *Error) Error() string { return e.Says }

// Advice is the remedy, for a caller that finds this in a chain of errors; "": that of the kind.
func (e *Error) Advice() string { return e.Do }

// Unwrap gives errors.Is the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// answers are the words by which servers refuse a repository: git's own and those of
// its daemon, and those of GitHub, GitLab, Gitea, Forgejo and Bitbucket, which all
// end with the same status.
var answers = []struct {
	words string
	kind  error
}{
	{"does not appear to be a git repository", providers.ErrNotExist},
	{"repository not found", providers.ErrNotExist},
	{"could not be found", providers.ErrNotExist},
	{"cannot find repository", providers.ErrNotExist},
	{"repository does not exist", providers.ErrNotExist},
	{"no such repository", providers.ErrNotExist},
	{"not authorized", providers.ErrPermission},
	{"not allowed", providers.ErrPermission},
	{"permission to", providers.ErrPermission},
	{"permission denied", providers.ErrPermission},
	{"write access to repository not granted", providers.ErrPermission},
	{"marked as read only", providers.ErrPermission},
	{"read-only", providers.ErrPermission},
	{"service not enabled", providers.ErrPermission},
	{"not exported", providers.ErrPermission},
}

// Refused is the error of a service that ended before it began, with its last words. A server
// that says nothing, or nothing known, counts as unreachable.
func Refused(said, code string, cause error) *Error {
	e := &Error{Kind: providers.ErrUnavailable, Code: code, Says: "the server said nothing", Err: cause}
	if said = plainly(said); said == "" {
		return e
	}
	e.Says = "the server says: " + said
	said = strings.ToLower(said)
	for _, a := range answers {
		if strings.Contains(said, a.words) {
			e.Kind = a.kind
			return e
		}
	}
	return e
}

// WordsMax bounds the part of a server's words that is kept, in bytes.
const WordsMax = 300

// plainly is the beginning of a text, in one line.
func plainly(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), WordsMax)], "")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }), "; ")
}
