package azure

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Kind is what a configuration calls this service.
const Kind = "azure"

// traits are what Azure is like. Of 8 KiB for metadata some are for the encoding of names.
var traits = bucket.Service{
	Name: Kind, Missing: noContainer, Tells: true, Slashes: true, Key: 1 << 10, Metadata: 6 << 10, Put: 5000 << 20, Copy: blockMax, Size: 50_000 * blockMax,
	Words: bucket.Words{Dates: true, Link: bucket.BlobLink},
	Parts: providers.PartLimits{Min: 1, Max: blockMax, Count: 50_000},
}

const blockMax = 4000 << 20

// keys are those of every driver; mastraKeys are Mastra's own words for some of them, and
// its labels, which say nothing to a container.
var (
	keys = []string{"kind", "bucket", "prefix", "endpoint", "region", "account_name", "credentials"}

	mastraKeys = []string{"container", "accountName", "useDefaultCredential", "readOnly", "id", "displayName", "icon", "description"}
)

// Drivers opens containers under AIP-35's names for them.
func Drivers() []providers.Driver {
	return []providers.Driver{
		bucket.Driver(traits, "cloud-bucket", "a place in the host's bucket service, Azure", keys, openSettings),
		bucket.Driver(traits, "self-bucket", "a bucket of the workspace's owner, Azure", keys, openSettings),
		bucket.Driver(traits, "mastra-azure", "a container as Mastra's AzureBlobFilesystem is configured", slices.Concat(keys, mastraKeys), openSettings),
	}
}

// config is what Settings.Config says.
type config struct {
	container string
	prefix    string // "" or ends in a slash
	endpoint  string
	account   string // "": the credentials or the endpoint say it
	anonymous bool
}

func parseConfig(s providers.Settings, known []string) (config, error) {
	if err := s.CheckKeys(known...); err != nil {
		return config{}, err
	}
	get := s.Config
	if kind := get["kind"]; kind != "" && kind != Kind {
		return config{}, fmt.Errorf("kind %q is not Azure's: %w", kind, providers.ErrUnsupported)
	}
	c := config{container: either(get, "bucket", "container"), account: either(get, "account_name", "accountName"), anonymous: get["credentials"] == "none"}
	if c.container == "" || strings.ContainsAny(c.container, "/?#%") {
		return config{}, bucket.Invalid("container %q", c.container)
	}
	own, err := bucket.ParseBool("useDefaultCredential", get["useDefaultCredential"], false)
	switch {
	case err != nil:
		return config{}, err
	case own || get["credentials"] == "sdk":
		return config{}, fmt.Errorf("this machine's own login to Azure is not built in, name a secret: %w", providers.ErrUnsupported)
	case !slices.Contains([]string{"", "none"}, get["credentials"]):
		return config{}, bucket.Invalid("credentials %q (want none, or nothing)", get["credentials"])
	}
	return c.finish(get)
}

func either(get map[string]string, name, other string) string {
	if v := get[name]; v != "" {
		return v
	}
	return get[other]
}

// finish parses the place.
func (c config) finish(get map[string]string) (config, error) {
	endpoint := get["endpoint"]
	if endpoint == "" && c.account != "" {
		endpoint = "https://" + url.PathEscape(c.account) + ".blob.core.windows.net"
	}
	var err error
	if c.endpoint, err = bucket.ParseEndpoint(endpoint); err != nil {
		return config{}, err
	}
	if c.endpoint == "" {
		return config{}, bucket.Invalid("neither an endpoint nor an account")
	}
	c.prefix, err = bucket.ParsePrefix(get["prefix"])
	return c, err
}

// url is the container's.
func (c config) url() string { return c.endpoint + "/" + c.container }

// accountOf is the account of an endpoint: the first name of the host, or the path where
// the service has no name for each.
func (c config) accountOf() string {
	u, err := url.Parse(c.endpoint)
	if err != nil {
		return ""
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		return path
	}
	name, _, _ := strings.Cut(u.Hostname(), ".")
	return name
}
