package mountspec

// Names of the storage providers that AIP-35 enumerates.
const (
	ProviderCloudBucket = "cloud-bucket"
	ProviderSelfBucket  = "self-bucket"
	ProviderGitHub      = "github"
	ProviderLocalFS     = "local-fs"
	ProviderDevLocal    = "dev-local"
	ProviderMastraS3    = "mastra-s3"
	ProviderMastraAzure = "mastra-azure"
)

// ProviderVault is wsmount's own: a directory shared with agentm.
const ProviderVault = "vault"

// Config is the typed connection of one provider: exactly one of the structs
// of this file, by value. The set is closed.
type Config interface{ config() }

// BucketKind is the protocol of a self-bucket.
type BucketKind string

const (
	BucketS3    BucketKind = "s3"
	BucketAzure BucketKind = "azure"
	BucketGCS   BucketKind = "gcs"
)

// CloudBucketConfig is a place in the host's own bucket service. Prefix is
// empty or ends in one slash, in all types of this file.
type CloudBucketConfig struct {
	Bucket string
	Prefix string
}

// SelfBucketConfig is a bucket that the workspace's owner brings.
type SelfBucketConfig struct {
	Kind           BucketKind
	Endpoint       string // http(s) URL without user info; empty: the service's own
	Region         string
	Bucket         string
	Prefix         string
	CredentialsRef string // slug of a secret, wins over auth.state.env
}

// GitHubConfig is a git repository on a GitHub host. Owner and Repo are
// separate even where the manifest wrote repo: owner/name.
type GitHubConfig struct {
	Owner              string
	Repo               string
	Branch             string // empty: the remote's HEAD
	InstallationID     string // decimal, or empty
	DefaultCommitEmail string
}

// LocalFSConfig is a directory. MountPath is clean; a relative one is relative
// to the directory of the manifest and does not leave it.
type LocalFSConfig struct {
	MountPath string
	AgentID   string
}

// DevLocalConfig is a scratch directory. Root is clean, absolute or relative
// as in LocalFSConfig; empty means one under the temporary directory.
type DevLocalConfig struct {
	Root string
}

// VaultConfig is a directory that agentm writes too. VaultPath is clean; a relative one is
// relative to the directory of the manifest and does not leave it.
type VaultConfig struct {
	VaultPath string
}

// MastraS3Config holds the options of Mastra's S3Filesystem that are no credentials.
type MastraS3Config struct {
	Bucket         string
	Region         string
	Endpoint       string
	Prefix         string
	ForcePathStyle *bool // nil: true exactly when Endpoint is set
	ReadOnly       bool
	Label          Label
}

// MastraAzureConfig holds the options of Mastra's AzureBlobFilesystem that are no credentials.
type MastraAzureConfig struct {
	Container            string
	AccountName          string
	Endpoint             string
	Prefix               string
	UseDefaultCredential bool
	ReadOnly             bool
	Label                Label
}

// Label is how Mastra shows a filesystem; wsmount only carries it.
type Label struct{ ID, DisplayName, Icon, Description string }

// RawConfig is the config of a provider that only the host knows: plain
// scalars, []any and map[string]any.
type RawConfig struct {
	Values map[string]any
}

func (CloudBucketConfig) config() {}
func (SelfBucketConfig) config()  {}
func (GitHubConfig) config()      {}
func (LocalFSConfig) config()     {}
func (DevLocalConfig) config()    {}
func (VaultConfig) config()       {}
func (MastraS3Config) config()    {}
func (MastraAzureConfig) config() {}
func (RawConfig) config()         {}
