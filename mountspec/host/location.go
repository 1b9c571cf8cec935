package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/endpoint"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/host/ondisk"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// Services that hold bytes. Several providers reach one service, so that
// places are compared by it.
const (
	ServiceDir = "dir"
	ServiceGit = "git"
	ServiceRaw = "raw" // of a provider that only the host knows
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
	case ServiceDir:
		return l.Prefix
	case ServiceGit:
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
	}{l, manifestOf(path)}) // plain strings: cannot fail
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// sharesBytes is Overlaps for places of this machine too that have two paths.
func (l Location) sharesBytes(m Location, on *ondisk.Disks) bool {
	return l.Overlaps(m) || l.Service == ServiceDir && m.Service == ServiceDir && on.Overlap(l.Prefix, m.Prefix)
}

// is says whether l and m are one place, whichever provider leads there.
func (l Location) is(m Location) bool {
	return l.Service == m.Service && endpoint.Service(l.Endpoint) == endpoint.Service(m.Endpoint) && l.Prefix == m.Prefix && l.Branch == m.Branch &&
		(l.Bucket == m.Bucket || l.Service == ServiceGit && strings.EqualFold(l.Bucket, m.Bucket))
}

// Overlaps says whether a byte of l can be a byte of m. When that cannot be
// known (two branches of which one is HEAD) it says yes.
func (l Location) Overlaps(m Location) bool {
	if l.Service != m.Service || endpoint.Service(l.Endpoint) != endpoint.Service(m.Endpoint) {
		return false
	}
	switch l.Service {
	case ServiceDir:
		return grant.Overlaps(l.Prefix, m.Prefix)
	case ServiceGit:
		return strings.EqualFold(l.Bucket, m.Bucket) && (l.Branch == m.Branch || l.Branch == "" || m.Branch == "")
	case ServiceRaw:
		return l == m
	}
	return l.Bucket == m.Bucket && grant.Overlaps(l.Prefix, m.Prefix)
}

// locate says where a storage's bytes lie. dir is the directory that
// relative paths are relative to; local is the real path of a local root.
func (c *Config) locate(s *mountspec.Storage, local string) Location {
	l := Location{Provider: s.Provider}
	switch x := s.Config.(type) {
	case mountspec.CloudBucketConfig:
		if b := c.CloudBucket; b != nil {
			l.Service, l.Endpoint = b.Kind, endpoint.Default(b.Kind, b.Endpoint, b.Region, "")
		}
		l.Bucket, l.Prefix = x.Bucket, x.Prefix
	case mountspec.SelfBucketConfig:
		l.Service, l.Bucket, l.Prefix = string(x.Kind), x.Bucket, x.Prefix
		l.Endpoint = endpoint.Default(l.Service, x.Endpoint, x.Region, "")
	case mountspec.MastraS3Config:
		l.Service, l.Bucket, l.Prefix = secrets.S3, x.Bucket, x.Prefix
		l.Endpoint = endpoint.Default(l.Service, x.Endpoint, x.Region, "")
	case mountspec.MastraAzureConfig:
		l.Service, l.Bucket, l.Prefix = secrets.Azure, x.Container, x.Prefix
		l.Endpoint = endpoint.Default(l.Service, x.Endpoint, "", x.AccountName)
	case mountspec.GitHubConfig:
		l.Service, l.Endpoint, l.Branch = ServiceGit, orDefault(c.GitHub.BaseURL, endpoint.PublicGitHub), x.Branch
		l.Bucket = x.Owner + "/" + x.Repo
	case mountspec.LocalFSConfig, mountspec.DevLocalConfig, mountspec.VaultConfig:
		l.Service, l.Prefix = ServiceDir, local
	case mountspec.RawConfig:
		b, _ := json.Marshal(x.Values)
		l.Service, l.Prefix = ServiceRaw, string(b)
	}
	return l
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// relativeTo makes a manifest's path absolute below its directory.
func relativeTo(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
