package bucket

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// Invalid is an error of a call or a configuration.
func Invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, providers.ErrInvalid)...)
}

// ParseBool reads a switch of a configuration; unset is what "" means.
func ParseBool(key, s string, unset bool) (bool, error) {
	switch s {
	case "":
		return unset, nil
	case "true", "false":
		return s == "true", nil
	}
	return false, Invalid("%s %q (want true or false)", key, s)
}

// ParseEndpoint takes what a service is reached by, and nothing that would be
// sent along: no user, no query.
func ParseEndpoint(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil: // the error would show all of it
		return "", Invalid("endpoint is not a URL")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", Invalid("endpoint must be an http or https URL")
	case u.User != nil, u.RawQuery != "", u.Fragment != "", u.ForceQuery:
		return "", Invalid("endpoint must have no user, query or fragment")
	}
	return strings.TrimRight(s, "/"), nil
}

// ParsePrefix trims slashes and appends one; the empty prefix stays empty.
func ParsePrefix(s string) (string, error) {
	s = strings.Trim(s, "/")
	if s == "" {
		return "", nil
	}
	for segment := range strings.SplitSeq(s, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return "", Invalid("prefix %q has a segment %q", s, segment)
		}
	}
	if strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }) >= 0 {
		return "", Invalid("prefix %q has control characters", s)
	}
	return s + "/", nil
}
