package azure

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Kind is the name of this service in a configuration.
const Kind = "azure"

// traits are Azure's limits. Of 8 KiB for metadata, some are for the encoding of names.
var traits = bucket.Service{
	Name: Kind, People: "Azure", Missing: noContainer, Tells: true, ListStart: bucket.NearKey, Slashes: true, Key: 1 << 10, Metadata: 6 << 10, Put: 5000 << 20, Copy: blockMax, Size: 50_000 * blockMax,
	Words: bucket.Words{Dates: true, Link: bucket.BlobLink},
	Keys:  []string{"account_name"}, Mastra: []string{"container", "accountName", "useDefaultCredential"},
	Parts: providers.PartLimits{Min: 1, Max: blockMax, Count: 50_000},
}

const blockMax = 4000 << 20

// Drivers opens containers under AIP-35's names for them.
func Drivers() []providers.Driver { return bucket.Drivers(traits, connect) }

// config is the parsed Settings.Config.
type config struct {
	bucket.Place
	account string // "": from the credentials or the endpoint
}

func parseConfig(get map[string]string, at bucket.Place) (config, error) {
	c := config{at, cmp.Or(get["account_name"], get["accountName"])}
	own, err := bucket.ParseBool("useDefaultCredential", get["useDefaultCredential"], false)
	switch {
	case err != nil:
		return config{}, err
	case own:
		return config{}, loginOfTheHost{}
	case c.Credentials == "sdk" && strings.HasPrefix(c.Endpoint, "http:"):
		return config{}, bucket.Invalid("this machine's own login would go over the network as it is, so the endpoint needs https")
	case c.Endpoint == "" && c.account == "":
		return config{}, bucket.Invalid("neither an endpoint nor an account")
	case c.Endpoint == "":
		c.Endpoint, err = bucket.ParseEndpoint("https://" + url.PathEscape(c.account) + ".blob.core.windows.net")
	}
	return c, err
}

// loginOfTheHost is the error for a manifest that requests the login of this machine.
type loginOfTheHost struct{}

func (loginOfTheHost) Error() string {
	return "this machine's own login is for the host to give, to its cloud-bucket (credentials: sdk), and not for a manifest to take"
}

func (loginOfTheHost) Unwrap() error { return providers.ErrUnauthenticated }

// Advice is the remedy for a person.
func (loginOfTheHost) Advice() string {
	return "leave useDefaultCredential out, and name a secret of yours in the manifest, as with auth: { state: { env: [ AZURE_STORAGE_KEY ] } }"
}

// url is the URL of the container.
func (c config) url() string { return c.Endpoint + "/" + c.Bucket }

// accountOf is the account of an endpoint: the first label of the host name, or the path at a
// service without a host name for each account.
func (c config) accountOf() string {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return ""
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		return path
	}
	name, _, _ := strings.Cut(u.Hostname(), ".")
	return name
}
