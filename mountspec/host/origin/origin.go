// Package origin knows where a workspace lies together with its manifests, in a bucket or
// a repository, and reads them from it. It decides nothing: the storage block that an origin
// stands for decides whether the place exists, and who may read it.
//
//	p, err := origin.ParsePlace("github:acme/site#main")
//	storage, err := origin.Origin{Place: p}.Storage(false, mountspec.Options{})
//	files := origin.NewFiles(ctx, source) // of the store of that storage
//	text, err := files.Read("WORKSPACE.md")
package origin

import (
	"fmt"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// An Origin is where a workspace lies, and how it is read.
type Origin struct {
	Place    Place  `json:"place"`
	Endpoint string `json:"endpoint,omitempty"` // of a bucket; empty: the host's own service, or that of the kind
	Region   string `json:"region,omitempty"`
	// Auth names the credentials as a manifest does: a variable of auth.state.env, or for
	// a bucket the slug of a secret. Empty: those that are granted without a name, or none.
	Auth string `json:"auth,omitempty"`
}

// IsPlain reports whether an origin names no more than its place.
func (o Origin) IsPlain() bool { return o == Origin{Place: o.Place} }

// Storage is the storage block that an origin stands for. own: the bucket is the host's own.
func (o Origin) Storage(own bool, parse mountspec.Options) (*mountspec.Storage, error) {
	p, def := o.Place, mountspec.Storage{}
	bucket := mountspec.SelfBucketConfig{Kind: mountspec.BucketKind(p.Kind), Endpoint: o.Endpoint, Region: o.Region, Bucket: p.Bucket, Prefix: p.Prefix}
	isEnv := secrets.IsEnvName(o.Auth)
	if isEnv {
		def.Auth.Env = []string{o.Auth}
	} else {
		bucket.CredentialsRef = o.Auth
	}
	switch {
	case p.Kind == GitHub && o.Auth != "" && !isEnv:
		return nil, fmt.Errorf("%.60q names no credentials of a repository: that is a variable, such as GITHUB_TOKEN, which may stand for a secret", o.Auth)
	case p.Kind == GitHub && (o.Endpoint != "" || o.Region != ""):
		return nil, fmt.Errorf("a repository has neither an endpoint nor a region: its server is that of the host configuration")
	case p.Kind == GitHub:
		def.Provider, def.Config = mountspec.ProviderGitHub, mountspec.GitHubConfig{Owner: p.Owner, Repo: p.Repo, Branch: p.Branch}
	case own:
		def.Provider, def.Config = mountspec.ProviderCloudBucket, mountspec.CloudBucketConfig{Bucket: p.Bucket, Prefix: p.Prefix}
	default:
		def.Provider, def.Config = mountspec.ProviderSelfBucket, bucket
	}
	st, found := mountspec.DefineStorage(def, parse)
	if wrong := found.Filter(mountspec.Error); len(wrong) > 0 {
		return nil, fmt.Errorf("%s", wrong[0].Message)
	}
	return st, nil
}
