package azure

import (
	"cmp"
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
	Name: Kind, People: "Azure", Missing: noContainer, Tells: true, Slashes: true, Key: 1 << 10, Metadata: 6 << 10, Put: 5000 << 20, Copy: blockMax, Size: 50_000 * blockMax,
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
		bucket.Driver(traits, "cloud-bucket", "a place in the host's bucket service, Azure", keys, connect),
		bucket.Driver(traits, "self-bucket", "a bucket of the workspace's owner, Azure", keys, connect),
		bucket.Driver(traits, "mastra-azure", "a container as Mastra's AzureBlobFilesystem is configured", slices.Concat(keys, mastraKeys), connect),
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

func parseConfig(s providers.Settings, known []string) (config, bucket.Place, error) {
	at, err := traits.Place(s, known)
	if err != nil {
		return config{}, at, err
	}
	get := s.Config
	own, err := bucket.ParseBool("useDefaultCredential", get["useDefaultCredential"], false)
	c := config{container: at.Bucket, prefix: at.Prefix, endpoint: at.Endpoint, account: cmp.Or(get["account_name"], get["accountName"]), anonymous: at.Credentials == "none"}
	switch {
	case err != nil:
		return config{}, at, err
	case own || at.Credentials == "sdk":
		return config{}, at, fmt.Errorf("this machine's own login to Azure is not built in, name a secret: %w", providers.ErrUnsupported)
	case c.endpoint == "" && c.account == "":
		return config{}, at, bucket.Invalid("neither an endpoint nor an account")
	case c.endpoint == "":
		c.endpoint, err = bucket.ParseEndpoint("https://" + url.PathEscape(c.account) + ".blob.core.windows.net")
	}
	return c, at, err
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
