package mountspec

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"strings"
)

func decodeCloudBucket(o *object) Config {
	var c CloudBucketConfig
	c.Bucket = decodeBucket(o.need("bucket"), bucketName())
	c.Prefix = decodePrefix(o.get("prefix"))
	return c
}

func decodeSelfBucket(o *object) Config {
	var c SelfBucketConfig
	o.need("kind")
	c.Kind = BucketKind(o.oneOf("kind", string(BucketS3), string(BucketAzure), string(BucketGCS)))
	c.Endpoint = decodeEndpoint(o.get("endpoint"))
	c.Region = decodeRegion(o.get("region"))
	names := bucketName
	if c.Kind == BucketAzure {
		names = containerName
	}
	c.Bucket = decodeBucket(o.need("bucket"), names())
	c.Prefix = decodePrefix(o.get("prefix"))
	c.CredentialsRef = decodeSecretSlug(o.get("credentials_ref"))
	return c
}

func decodeMastraS3(o *object) Config {
	var c MastraS3Config
	c.Bucket = decodeBucket(o.need("bucket"), bucketName())
	c.Region = decodeRegion(o.need("region"))
	c.Endpoint = decodeEndpoint(o.get("endpoint"))
	c.Prefix = decodePrefix(o.get("prefix"))
	if b, ok := o.get("forcePathStyle").boolean(); ok {
		c.ForcePathStyle = &b
	}
	c.ReadOnly = o.boolean("readOnly")
	c.Label = decodeLabel(o)
	return c
}

func decodeMastraAzure(o *object) Config {
	var c MastraAzureConfig
	c.Container = decodeBucket(o.need("container"), containerName())
	c.AccountName, _ = o.someText("accountName")
	c.Endpoint = decodeEndpoint(o.get("endpoint"))
	c.Prefix = decodePrefix(o.get("prefix"))
	if c.UseDefaultCredential = o.boolean("useDefaultCredential"); c.UseDefaultCredential {
		o.get("useDefaultCredential").warn("default-credential", "name the secret, as with auth: { state: { env: [ AZURE_STORAGE_KEY ] } }",
			"a mount refuses this: this machine's own login is for the host to give, to its cloud-bucket")
	}
	c.ReadOnly = o.boolean("readOnly")
	c.Label = decodeLabel(o)
	return c
}

func decodeLabel(o *object) Label {
	return Label{o.text("id"), o.text("displayName"), o.text("icon"), o.text("description")}
}

// bucketName matches the names that S3, its look-alikes and GCS accept between them; the
// service itself has the last word. containerName is Azure's.
var (
	bucketName    = expression(`^[A-Za-z0-9][A-Za-z0-9._-]{1,220}[A-Za-z0-9]$`)
	containerName = expression(`^(\$root|\$web|[a-z0-9](-?[a-z0-9]){2,62})$`)
)

func decodeBucket(v value, names *regexp.Regexp) string {
	s, ok := v.text()
	if !ok || !v.filled(s) {
		return ""
	}
	if !v.matches(names, s) || strings.Contains(s, "..") {
		v.fail("bucket-name", "write the bare name, without a URL or a prefix", "%s is not the name of a bucket", show(s))
		return ""
	}
	return s
}

// decodePrefix trims slashes and appends one; the empty prefix stays empty. It
// refuses a prefix that would make a key that is no path.
func decodePrefix(v value) string {
	s, ok := v.text()
	if !ok {
		return ""
	}
	trimmed := strings.Trim(s, "/")
	switch {
	case trimmed == "":
		return ""
	case hasSegment(trimmed, "") || hasSegment(trimmed, ".") || hasSegment(trimmed, ".."):
		v.fail("prefix", "write plain segments, such as guilds/acme", "the prefix %s holds an empty, . or .. segment", show(s))
		return ""
	case len(trimmed) > 512:
		v.fail("prefix", "", "the prefix is longer than 512 bytes")
		return ""
	}
	return trimmed + "/"
}

var regionName = expression(`^[a-z0-9-]{2,32}$`)

func decodeRegion(v value) string {
	s, ok := v.text()
	if ok && !v.matches(regionName(), s) {
		v.fail("region", "write it like eu-west-1", "%s is not the name of a region", show(s))
		return ""
	}
	return s
}

// decodeEndpoint reads the base URL of a service. Whether it may be talked to
// is for the host's allow-list.
func decodeEndpoint(v value) string {
	s, ok := v.text()
	if !ok || !v.filled(s) {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" || strings.ContainsAny(s, " \\?#") {
		v.fail("endpoint", "write it like https://s3.eu-west-1.amazonaws.com", "%s is not the URL of a service", show(s))
		return ""
	}
	return s
}

// secretPath is a slug of AIP-19, with as many namespaces as AIP-35's own
// example (org/acme/s3-rw) has.
var secretPath = expression(`^([a-z][a-z0-9-]*[a-z0-9]/)*[a-z][a-z0-9-]*[a-z0-9]$`)

func decodeSecretSlug(v value) string {
	s, ok := v.text()
	if ok && (len(s) > 80 || !v.matches(secretPath(), s)) {
		v.fail("secret-slug", "write the slug of a secret, such as org/acme/s3-rw", "%s is not the slug of a secret", show(s))
		return ""
	}
	return s
}

var (
	githubOwner = expression(`^[A-Za-z0-9]([A-Za-z0-9_-]{0,38})$`)
	githubRepo  = expression(`^[A-Za-z0-9._-]{1,100}$`)
	digits      = expression(`^[0-9]{1,20}$`)
)

func decodeGitHub(o *object) Config {
	var c GitHubConfig
	c.Owner, c.Repo = decodeRepository(o)
	if v := o.get("branch"); v.given() {
		if c.Branch = o.text("branch"); !ValidBranch(c.Branch) && v.present() {
			v.fail("branch-name", "", "%s is not the name of a branch", show(c.Branch))
		}
	}
	c.InstallationID = o.text("installation_id")
	if v := o.get("installation_id"); v.present() && !v.matches(digits(), c.InstallationID) {
		v.fail("installation-id", "", "must be digits")
	}
	c.DefaultCommitEmail = o.text("default_commit_email")
	if v := o.get("default_commit_email"); v.present() && !plausibleEmail(c.DefaultCommitEmail) {
		v.fail("email", "write name@domain", "%s is not an e-mail address", show(c.DefaultCommitEmail))
	}
	return c
}

// decodeRepository reads owner and repo, or the "owner/name" of AIP-35's
// ADAPTER; both together must agree.
func decodeRepository(o *object) (owner, repo string) {
	at := o.need("repo")
	text, ok := at.text()
	prefix, name, both := strings.Cut(text, "/")
	if !both {
		prefix, name = "", text
	}
	if v := o.get("owner"); v.given() {
		owner = o.text("owner")
		if both && v.present() && owner != prefix {
			v.fail("repository", "keep one of the two", "owner is %s, and repo says %s", show(owner), show(prefix))
		}
	} else if owner = prefix; !both && ok {
		o.need("owner")
	}
	switch {
	case !ok:
	case strings.ContainsAny(text, ":@"): // which is not shown: it may hold a password
		at.fail("repository", "write owner/name; the server, of https, ssh or git, is providers.github.base_url of the host configuration", "it is a URL, not the name of a repository")
	case !githubRepo().MatchString(name) || name == "." || name == "..":
		at.fail("repository", "write the repository's name, or owner/name", "%s is not the name of a repository", show(text))
	case strings.HasSuffix(name, ".git"):
		at.fail("repository", "leave .git away", "%s is a clone URL's ending, not a name", show(text))
	case owner != "" && !githubOwner().MatchString(owner):
		at.fail("repository", "", "%s is not the name of an account", show(owner))
	}
	return owner, name
}

func decodeLocalFS(o *object) Config {
	c := LocalFSConfig{MountPath: decodeLocalPath(o, "mount_path", "path")}
	c.AgentID, _ = o.someText("agent_id")
	switch local := o.atLeastOne("mount_path", "path"); {
	case local && o.has("agent_id"):
		o.get("agent_id").warn("agent-ignored", "", "wsmount is no sync agent: the directory itself is used")
	case !local:
		hint := "name the directory"
		if o.has("agent_id") {
			hint = "name the directory; wsmount is no sync agent, so agent_id alone finds nothing"
		}
		o.fail("missing-key", hint, "the key mount_path is missing")
	}
	return c
}

func decodeDevLocal(o *object) Config {
	return DevLocalConfig{Root: decodeLocalPath(o, "root", "path")}
}

func decodeVault(o *object) Config {
	return VaultConfig{VaultPath: localPath(o.need("vault_path"))}
}

// decodeLocalPath reads a directory under its name in AIP-35 or in its
// ADAPTER, not both.
func decodeLocalPath(o *object, key, alias string) string {
	v, other := o.get(key), o.get(alias)
	if v.n != nil && other.n != nil {
		other.fail("local-path", "keep "+key, "%s and %s name the same thing", key, alias)
		return ""
	}
	return cmp.Or(localPath(v), localPath(other))
}

func localPath(v value) string {
	s, ok := v.text()
	if !ok || !v.filled(s) {
		return ""
	}
	clean := path.Clean(s)
	problem := ""
	switch {
	case strings.HasPrefix(s, "~"):
		problem = "begins with ~, which is not expanded"
	case hasSegment(s, ".."):
		problem = "holds .."
	case len(s) > 4096:
		problem = "is too long"
	}
	if problem != "" {
		v.fail("local-path", "write an absolute path, or one below the manifest's directory", "%s %s", show(s), problem)
		return ""
	}
	if !strings.HasPrefix(s, "/") {
		v.warn("local-path-relative", "AIP-35 has absolute paths only", "%s is taken from the manifest's directory", show(s))
	}
	return clean
}
