package host

import (
	"github.com/wsmount/wsmount/mountspec/host/endpoint"
	"github.com/wsmount/wsmount/mountspec/host/hook"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// A Config is the host configuration. The zero value grants nothing. It
// does not change after LoadConfig or ParseConfig, and may be shared.
type Config struct {
	// Path is the file that was read, or empty when there is none. Dir is the
	// directory of the registry file: that of Path, or of the usual place.
	Path, Dir string
	// Places are the files that were, or would have been, read instead by this or
	// another call of LoadConfig.
	Places []string
	digest string // of the text of Path; empty: there is none

	Workspaces     map[string]WorkspaceEntry // by address
	Storages       map[string]StorageEntry   // STORAGE.md files by registry slug
	Manifests      map[string]string         // other manifests by registry slug
	SearchPath     []string
	Secrets        []secrets.Entry
	AllowEnv       []secrets.EnvGrant
	AllowEndpoints endpoint.Allowed
	AllowPaths     []string
	AllowRefs      []Pair // address patterns
	AllowOverlap   []Pair // address patterns, in either order
	AllowWriteBack []string
	AllowPersonal  []PersonalGrant
	CloudBucket    *CloudBucket // nil: the host has none
	GitHub         GitHub
	Identities     map[string]Identity
	Principal      string              // empty: user://<login>
	Roles          map[string][]string // by address pattern; none: owner of every registered workspace
	Groups         map[string][]string // principals, by group://name, org://name or guild://name
	Facts          string              // file of the host's present facts; empty: there are none
	Notify         []hook.Hook
}

// A WorkspaceEntry registers a workspace by hand.
type WorkspaceEntry struct {
	Path    string // directory, or WORKSPACE.md; it need not exist if Row names a storage
	OwnerID string // empty: any
	Row     *Row   // nil: the entry has no keys of a manifest
}

// A Pair of address patterns: From may use the manifests or the place of To.
type Pair struct{ From, To string }

// A PersonalGrant lets agents write in the operator's own space at Path, above their memory,
// if one of By has asked for it.
type PersonalGrant struct {
	Path   string
	By     []string
	Memory string // the directory below Path that is for memory; "": DefaultMemory
}

// DefaultMemory is agentm's directory for memory in the operator's own space (seed 002).
const DefaultMemory = "Agent"

// CloudBucket is the host's own bucket service, which the provider cloud-bucket
// stands for, with the grants of its parts.
type CloudBucket struct {
	Kind        string // s3, azure or gcs
	Endpoint    string // empty: the service's own
	Region      string
	Credentials string // "sdk", or the slug of a secret; empty: anonymous
	Grants      []BucketGrant
}

// StorageEntry is a storage policy that manifests may name. One that lies in a bucket
// keeps each workspace below a prefix of its own; Shared says that all have the prefix
// of the policy instead.
type StorageEntry struct {
	Path   string
	Shared bool
}

// A BucketGrant gives an owner the keys of a bucket below a prefix.
type BucketGrant struct{ Owner, Bucket, Prefix string }

// GitHub is the GitHub that the provider github stands for. Empty URLs mean the public
// one. BaseURL may be an ssh URL; then SSH has the credentials. It may be a git URL;
// then there are no credentials, and so there is neither APIURL nor App.
type GitHub struct {
	BaseURL, APIURL string
	App             *GitHubApp // nil: none
	SSH             SSH
	Clone           string // auto, full or blobless: whether to clone all contents at once; empty: auto
}

// SSH is the settings for a git server that is reached over SSH. The zero value trusts the user's
// known_hosts and the machine's, and has no key of the host's own.
type SSH struct {
	KnownHosts  string   // a file beside those two; empty: none
	Credentials string   // "agent", or the slug of a secret that is a private key; empty: none
	Allow       []string // address patterns of workspaces that may use the credentials
}

// A GitHubApp is the host's app and the installations of each owner.
type GitHubApp struct {
	ID            int64
	Key           string // slug of a secret
	Installations map[string][]int64
}

// An Identity is the person that a reference such as operator://current stands for.
type Identity struct{ Name, Email, GPGKey string }
