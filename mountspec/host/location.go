package host

import (
	"encoding/json"
	"path/filepath"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/endpoint"
	"github.com/wsmount/wsmount/mountspec/host/location"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// A Location is the place of a workspace's bytes, without credentials.
type Location = location.Location

// Services of a Location that are none of package secrets.
const (
	ServiceDir = location.Dir
	ServiceGit = location.Git
	ServiceRaw = location.Raw
)

// Real is location.Real, for users of this package's paths.
func Real(path string) string { return location.Real(path) }

// locate returns the place of a storage's bytes. dir is the directory that relative
// paths are relative to; local is the real path of a local root.
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
