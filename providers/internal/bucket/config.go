package bucket

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// Invalid is an error of a call or a configuration.
func Invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, providers.ErrInvalid)...)
}

// Place is the location and the credentials of a bucket, as in every service's configuration.
type Place struct {
	Bucket, Prefix string // the prefix is "" or ends in a slash
	Endpoint       string // "": the service's own
	Credentials    string // "", "sdk" or "none"
}

// place reads a configuration of the service with these keys.
func (s Service) place(settings providers.Settings, known []string) (at Place, err error) {
	if err := settings.CheckKeys(known...); err != nil {
		return Place{}, err
	}
	get := settings.Config
	if kind := get["kind"]; kind != "" && kind != s.Name {
		return Place{}, fmt.Errorf("kind %q is not %s's: %w", kind, s.People, providers.ErrUnsupported)
	}
	at.Bucket, at.Credentials = cmp.Or(get["bucket"], get["container"]), get["credentials"]
	if at.Bucket == "" || strings.ContainsAny(at.Bucket, "/?#%") {
		return Place{}, Invalid("bucket %q", at.Bucket)
	}
	if !slices.Contains([]string{"", "sdk", "none"}, at.Credentials) {
		return Place{}, Invalid("credentials %q (want sdk, none, or nothing)", at.Credentials)
	}
	if at.Endpoint, err = ParseEndpoint(get["endpoint"]); err != nil {
		return Place{}, err
	}
	if at.Prefix, err = ParsePrefix(get["prefix"]); err != nil {
		return Place{}, err
	}
	if s.Slashes && (strings.Contains(at.Prefix, `\`) || strings.Contains(at.Prefix, "./")) {
		return Place{}, Invalid("prefix %q has a backslash, or a name that ends in a dot", at.Prefix)
	}
	return at, nil
}

// ParseBool reads a switch of a configuration; "" gives unset.
func ParseBool(key, s string, unset bool) (bool, error) {
	switch s {
	case "":
		return unset, nil
	case "true", "false":
		return s == "true", nil
	}
	return false, Invalid("%s %q (want true or false)", key, s)
}

// ParseEndpoint takes the URL of a service, without parts that would be sent along: no user, no
// query.
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
