package mountspec

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// Credentials never stand in a manifest (AIP-35, conformance rule 2). Two
// tables say what counts as one: the name of the key, or the shape of the
// value. A name that ends in "ref" points at a secret and is fine.

// credentialNames are compared without case, dashes and underscores, with the
// end of a key: aws_secret_access_key is found by secretaccesskey.
var credentialNames = []string{
	"accesskey", "accesskeyid", "accesstoken", "accountkey", "apikey", "apitoken",
	"authtoken", "bearertoken", "clientsecret", "connectionstring", "credential",
	"credentials", "encryptionkey", "idtoken", "passphrase", "passwd", "password",
	"privatekey", "refreshtoken", "sastoken", "sastokens", "secret", "secretaccesskey",
	"secretkey", "sessiontoken", "sharedkey", "sharedaccesssignature", "signingkey",
	"token", "pat",
}

// wholeNames are too short to be looked for at the end of other words.
var wholeNames = []string{"pat"}

// credentialKey reports whether a key of that name holds a credential.
func credentialKey(key string) bool {
	folded := fold(key)
	if slices.Contains(credentialNames, folded) {
		return true
	}
	return slices.ContainsFunc(credentialNames, func(name string) bool {
		return !slices.Contains(wholeNames, name) && strings.HasSuffix(folded, name)
	})
}

type shape struct {
	name string
	re   *regexp.Regexp
	also func(string) bool // nil: the pattern is enough
}

// credentialShapes are compiled when a manifest is read: that takes milliseconds, and
// most commands read none.
var credentialShapes = sync.OnceValue(func() []shape {
	return []shape{
		{name: "an AWS access key id", re: regexp.MustCompile(`\b(AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`)},
		{name: "an AWS secret access key", re: regexp.MustCompile(`^[A-Za-z0-9/+]{40}$`), also: mixedLetters},
		{name: "a GitHub token", re: regexp.MustCompile(`\bgh[opsur]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}`)},
		{name: "a GitLab token", re: regexp.MustCompile(`\bgl(pat|dt|rt|cbt|ft|soat)-[A-Za-z0-9_-]{20,}`)},
		{name: "a Slack token", re: regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`)},
		{name: "a Google API key", re: regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}`)},
		{name: "a Google OAuth token", re: regexp.MustCompile(`\bya29\.[A-Za-z0-9_-]{20,}`)},
		{name: "a private key", re: regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----`)},
		{name: "an Azure account key", re: regexp.MustCompile(`(?i)\b(AccountKey|SharedAccessKey|SharedAccessSignature)=|^[A-Za-z0-9+/]{86}==$`)},
		{name: "a JSON web token", re: regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.`)},
		{name: "an npm token", re: regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}\b`)},
		{name: "a PyPI token", re: regexp.MustCompile(`\bpypi-[A-Za-z0-9_-]{16,}`)},
		{name: "a Hugging Face token", re: regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,}\b`)},
		{name: "an API secret key", re: regexp.MustCompile(`\b[sr]k[-_](live|test|proj|ant)[-_][A-Za-z0-9_-]{16,}|\bsk-[A-Za-z0-9]{32,}\b`)},
		{name: "an authorization header", re: regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{16,}`)},
		{name: "user info in a URL", re: regexp.MustCompile(`(?i)\bhttps?://[^/?#\s@]+@|[a-z][a-z0-9+.-]*://[^/?#\s@:]*:[^/?#\s@]+@`)},
		{name: "a credential in a URL's query", re: regexp.MustCompile(`(?i)[?&;](sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature|x-goog-credential|access_token|auth_token|token|api_?key|client_secret|password|secret)=[^&\s]`)},
	}
})

// mixedLetters tells 40 random characters from a hash or a path in words.
func mixedLetters(s string) bool {
	return strings.ContainsAny(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") &&
		strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyz") && strings.ContainsAny(s, "0123456789")
}

// credentialShape names the kind of credential that a text looks like, or "".
func credentialShape(s string) string {
	for _, sh := range credentialShapes() {
		if sh.re.MatchString(s) && (sh.also == nil || sh.also(s)) {
			return sh.name
		}
	}
	return ""
}

const credentialHint = "put it where the host keeps secrets and name it by auth.ref (AIP-19)"

// refuseCredentials reports every scalar below v that holds a credential, by
// its key or by its shape, and marks it, so that its value is said nowhere.
func (v value) refuseCredentials() {
	if v.present() {
		v.scanCredentials("")
	}
}

func (v value) scanCredentials(key string) {
	switch v.n.Kind {
	case yaml.ScalarNode:
		v.scanScalar(key)
	case yaml.SequenceNode:
		for _, item := range v.items() {
			if item.present() {
				item.scanCredentials(key)
			}
		}
	case yaml.MappingNode:
		o, _ := v.object()
		for _, k := range o.order {
			if sh := credentialShape(k); sh != "" {
				v.d.bad[o.fields[k].n] = true
				v.fail("plaintext-credential", credentialHint, "a key here looks like %s", sh)
			} else if o.fields[k].present() {
				o.fields[k].scanCredentials(k)
			}
		}
	}
}

// pathKeys hold a directory of this machine. An absolute path can have any
// shape, also that of 40 random characters of base64.
var pathKeys = []string{"mount_path", "root", "path"}

func isPath(key, s string) bool {
	return strings.HasPrefix(s, "/") && slices.Contains(pathKeys, key)
}

func (v value) scanScalar(key string) {
	tag := v.n.ShortTag()
	switch sh := credentialShape(v.n.Value); {
	case isPath(key, v.n.Value):
		return
	case sh != "":
		v.fail("plaintext-credential", credentialHint, "the value looks like %s", sh)
	case credentialKey(key) && tag != "!!bool" && tag != "!!null" && v.n.Value != "":
		v.fail("plaintext-credential", credentialHint, "a key of this name holds a credential in plain text")
	default:
		return
	}
	v.d.bad[v.n] = true
}
