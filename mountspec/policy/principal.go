package policy

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

var principal = regexp.MustCompile(`^([a-z][a-z0-9+.-]*)://([^\s*]*[^\s*/])$`)

// CheckPrincipal says whether a text names exactly one principal: neither a role, nor a
// group, nor the current user, whichever that is.
func CheckPrincipal(text string) error {
	m := principal.FindStringSubmatch(text)
	if m == nil || m[2] == "current" || slices.Contains([]string{"role", "group", "org", "guild"}, m[1]) {
		return errors.New("does not name one principal")
	}
	return nil
}

// person identifies the human behind a principal, in whichever capacity and spelling. Two
// principals alike in this count as one where two are wanted.
func person(principal string) string {
	_, name, ok := strings.Cut(principal, "://")
	if !ok {
		name = principal
	}
	return strings.ToLower(strings.Trim(name, "/ \t"))
}
