package mountspec

import (
	"regexp"
	"sync"
)

// expression is a regular expression that is compiled when it is first asked for: all of
// them together take milliseconds, and most commands ask for none.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
