// Package location says where the bytes of a workspace lie, without credentials, and which
// places are one.
//
// It knows services, directories and paths, and neither grants nor manifests. It
// promises: two places of which a byte of one can be a byte of the other overlap, and the
// name of a working copy changes with every change of the place of its bytes.
//
//	l := location.Location{Service: location.Dir, Prefix: "/srv/notes"}
//	name := l.Fingerprint("/srv/notes/WORKSPACE.md")
package location

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/wsmount/wsmount/mountspec/host/endpoint"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/host/ondisk"
)

// Services that hold bytes. Several providers reach one service, so that
// places are compared by it.
const (
	Dir = "dir"
	Git = "git"
	Raw = "raw" // of a provider that only the host knows
)

// A Location is where a workspace's bytes lie, without credentials.
type Location struct {
	Provider string `json:"provider"`
	Service  string `json:"service"`            // dir, git, raw, or s3, azure, gcs
	Endpoint string `json:"endpoint,omitempty"` // as it will be asked
	Bucket   string `json:"bucket,omitempty"`   // bucket, container, or owner/repo
	Prefix   string `json:"prefix,omitempty"`   // key prefix, or the directory's real path
	Branch   string `json:"branch,omitempty"`   // empty: the remote's HEAD
}

// String prints the place for a person.
func (l Location) String() string {
	switch l.Service {
	case Dir:
		return l.Prefix
	case Git:
		s := l.Endpoint + "/" + l.Bucket
		if l.Branch != "" {
			s += "#" + l.Branch
		}
		return s
	}
	return strings.TrimSuffix(l.Endpoint, "/") + "/" + l.Bucket + "/" + l.Prefix
}

// Fingerprint names the working copy of this place for a manifest that is
// registered at path: 32 hexadecimal digits. Another place, or another
// manifest, has another one, so that two are never mixed. A directory stands
// for the manifest that is not in it yet: to add that moves no working copy, and
// another wording of the same endpoint does not either.
func (l Location) Fingerprint(path string) string {
	l.Endpoint = endpoint.Plain(l.Endpoint)
	b, _ := json.Marshal(struct {
		Location
		Path string `json:"path"`
	}{l, Manifest(path)}) // plain strings: cannot fail
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// SharesBytes is Overlaps for places of this machine too that have two paths.
func (l Location) SharesBytes(m Location, on *ondisk.Disks) bool {
	return l.Overlaps(m) || l.Service == Dir && m.Service == Dir && on.Overlap(l.Prefix, m.Prefix)
}

// Is says whether l and m are one place, whichever provider leads to it.
func (l Location) Is(m Location) bool {
	return l.Service == m.Service && endpoint.Service(l.Endpoint) == endpoint.Service(m.Endpoint) && l.Prefix == m.Prefix && l.Branch == m.Branch &&
		(l.Bucket == m.Bucket || l.Service == Git && strings.EqualFold(l.Bucket, m.Bucket))
}

// Overlaps says whether a byte of l can be a byte of m. When that cannot be
// known (two branches of which one is HEAD) it says yes.
func (l Location) Overlaps(m Location) bool {
	if l.Service != m.Service || l.Endpoint != m.Endpoint && endpoint.Service(l.Endpoint) != endpoint.Service(m.Endpoint) {
		return false
	}
	switch l.Service {
	case Dir:
		return grant.Overlaps(l.Prefix, m.Prefix)
	case Git:
		return strings.EqualFold(l.Bucket, m.Bucket) && (l.Branch == m.Branch || l.Branch == "" || m.Branch == "")
	case Raw:
		return l == m
	}
	return l.Bucket == m.Bucket && grant.Overlaps(l.Prefix, m.Prefix)
}

// Manifest is the path of the manifest that a directory or a manifest's
// path means, its directory without links.
func Manifest(path string) string {
	if strings.HasSuffix(path, ".md") {
		return filepath.Join(Real(filepath.Dir(path)), filepath.Base(path))
	}
	return filepath.Join(Real(path), "WORKSPACE.md")
}

// Real resolves the links of as much of path as exists, so that two names of
// one place can be compared.
func Real(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if path == "/" || path == "." {
		return path
	}
	return filepath.Join(Real(filepath.Dir(path)), filepath.Base(path))
}
