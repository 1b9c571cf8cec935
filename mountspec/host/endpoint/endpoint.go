// Package endpoint knows the addresses of services: which one a service has by itself, and
// which of them are the same, public, or meant by a pattern. It asks no network.
//
//	endpoint.Default("s3", "", "eu-west-1", "") // https://s3.eu-west-1.amazonaws.com
package endpoint

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec/host/yamlread"
	"github.com/wsmount/wsmount/mountspec/netguard"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// The public GitHub.
const (
	PublicGitHub    = "https://github.com"
	PublicGitHubAPI = "https://api.github.com"
)

// Default is the service's own endpoint where none is given.
func Default(service, endpoint, region, account string) string {
	switch {
	case endpoint != "":
		return endpoint
	case service == secrets.S3 && region != "" && region != "auto":
		return "https://s3." + region + ".amazonaws.com"
	case service == secrets.S3:
		return "https://s3.amazonaws.com"
	case service == secrets.GCS:
		return "https://storage.googleapis.com"
	case service == secrets.Azure && account != "":
		return "https://" + account + ".blob.core.windows.net"
	}
	return ""
}

// Service makes the endpoints of one service equal: case, default
// ports, and Amazon's many names for one set of buckets.
func Service(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "amazonaws.com" || strings.HasSuffix(host, ".amazonaws.com") {
		return "amazonaws.com"
	}
	port := u.Port()
	if port == defaultPorts[u.Scheme] {
		port = ""
	}
	return host + ":" + port
}

var defaultPorts = map[string]string{"https": "443", "http": "80", "ssh": "22", "git": "9418"}

// Plain is an endpoint in one canonical wording: a host
// in lower case, no default port, and no slash at the end.
func Plain(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return endpoint
	}
	u.Host = strings.TrimSuffix(strings.ToLower(u.Host), ":"+defaultPorts[u.Scheme])
	return strings.TrimRight(u.String(), "/")
}

// Origin is the scheme, the host and the port of a URL.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// IsPublicName says whether a host is a name that could be public. The address
// is checked when it is dialed.
func IsPublicName(host string) bool {
	_, err := netip.ParseAddr(host)
	return err != nil && strings.Contains(host, ".")
}

// IsOwn says whether the endpoint is one that the service itself has:
// only the service answers at it.
func IsOwn(u *url.URL, service string) bool {
	h := strings.ToLower(u.Hostname())
	if u.Scheme != "https" || u.Port() != "" && u.Port() != "443" {
		return false
	}
	switch service {
	case secrets.S3:
		return h == "s3.amazonaws.com" || strings.HasPrefix(h, "s3.") && strings.HasSuffix(h, ".amazonaws.com") && strings.Count(h, ".") == 3
	case secrets.GCS:
		return h == "storage.googleapis.com"
	case secrets.Azure:
		account, ok := strings.CutSuffix(h, ".blob.core.windows.net")
		return ok && account != "" && !strings.Contains(account, ".")
	}
	return false
}

// IsPublicGitHub reports whether a server is the public GitHub, over HTTP or SSH.
func IsPublicGitHub(base string) bool {
	u, err := url.Parse(base)
	return base == PublicGitHub || err == nil && u.Scheme == "ssh" && (u.Hostname() == "github.com" || u.Hostname() == "ssh.github.com")
}

// Allowed are the patterns of package netguard that a host lists.
type Allowed []string

// Of are the host's own patterns of an endpoint; the plain origin when it lists none.
func (a Allowed) Of(endpoint string) []string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil
	}
	var out []string
	for _, p := range a {
		if matches(p, u) {
			out = append(out, exact(p, u))
		}
	}
	if len(out) == 0 {
		out = []string{Origin(u)}
	}
	return out
}

// OfBucket has the endpoints that the volume of a bucket may ask: the one that the host lists
// (with the networks behind it), and the bucket in front of its name, where
// clients put it.
func (a Allowed) OfBucket(endpoint, service, bucket string) []string {
	out := a.Of(endpoint)
	u, err := url.Parse(endpoint)
	if err != nil || service != secrets.S3 || !IsPublicName(u.Hostname()) {
		return out
	}
	for _, p := range out {
		if front := strings.Replace(p, "://", "://"+bucket+".", 1); netguard.ValidatePattern(front) == nil {
			out = append(out, front)
			break
		}
	}
	return out
}

// Has says whether the host lists an endpoint.
func (a Allowed) Has(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && slices.ContainsFunc(a, func(p string) bool { return matches(p, u) })
}

func matches(pattern string, u *url.URL) bool {
	g, err := netguard.New(netguard.Options{Allow: []string{pattern}})
	return err == nil && g.Check(&url.URL{Scheme: u.Scheme, Host: u.Host}) == nil
}

// exact narrows a pattern with a star to the one origin that is meant, and
// keeps the networks behind it.
func exact(pattern string, u *url.URL) string {
	fields := strings.Fields(pattern)
	fields[0] = Origin(u)
	return strings.Join(fields, " ")
}

// Read reads the URL of a service that speaks HTTP.
func Read(v yamlread.Node) string {
	s, ok := v.Text()
	if !ok {
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
	case u.Scheme != "https" && u.Scheme != "http":
		err = errors.New("its scheme is not https or http")
	default:
		err = netguard.ValidatePattern(u.Scheme + "://" + u.Host)
	}
	if err == nil && (u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		err = errors.New("must be scheme, host, port and at most a path")
	}
	if !v.Check("endpoint", "write a URL such as https://s3.example.com", err) {
		return ""
	}
	return strings.TrimSuffix(s, "/")
}
