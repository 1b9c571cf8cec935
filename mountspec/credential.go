package mountspec

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// Credentials never stand in a manifest (AIP-35, conformance rule 2). Two
// tables say which entries count as one: the name of the key, or the shape of the
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
	// starts are its first characters, by which it is found in a text of any kind, and not only as
	// a value of a manifest. Few places have to be looked at then.
	starts []string
	length int // how long it is known to be one by; 0: longest
}

// longest is the number of bytes that show most credentials for certain.
const longest = 128

// credentialShapes are compiled when a manifest is read: that takes milliseconds, and
// most commands read none.
var credentialShapes = sync.OnceValue(func() []shape {
	return []shape{
		{name: "an AWS access key id", starts: []string{"AKIA", "ASIA", "ABIA", "ACCA"}, re: regexp.MustCompile(`\b(AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`)},
		{name: "an AWS secret access key", re: regexp.MustCompile(`^[A-Za-z0-9/+]{40}$`), also: mixedLetters},
		{name: "a GitHub token", starts: []string{"ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_"}, re: regexp.MustCompile(`\bgh[opsur]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}`)},
		{name: "a GitLab token", starts: []string{"glpat-", "gldt-", "glrt-", "glcbt-", "glft-", "glsoat-"}, re: regexp.MustCompile(`\bgl(pat|dt|rt|cbt|ft|soat)-[A-Za-z0-9_-]{20,}`)},
		{name: "a Slack token", starts: []string{"xox"}, re: regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`)},
		{name: "a Google API key", starts: []string{"AIza"}, re: regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}`)},
		{name: "a Google OAuth token", starts: []string{"ya29."}, re: regexp.MustCompile(`\bya29\.[A-Za-z0-9_-]{20,}`)},
		{name: "a private key", starts: []string{"-----BEGIN "}, re: regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----`)},
		{name: "an Azure account key", re: regexp.MustCompile(`(?i)\b(AccountKey|SharedAccessKey|SharedAccessSignature)=|^[A-Za-z0-9+/]{86}==$`)},
		{name: "a JSON web token", starts: []string{"eyJ"}, length: MaxCredential, re: regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.`)},
		{name: "an npm token", starts: []string{"npm_"}, re: regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}\b`)},
		{name: "a PyPI token", starts: []string{"pypi-"}, re: regexp.MustCompile(`\bpypi-[A-Za-z0-9_-]{16,}`)},
		{name: "a Hugging Face token", starts: []string{"hf_"}, re: regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,}\b`)},
		{name: "an API secret key", starts: []string{"sk-", "sk_", "rk-", "rk_"}, re: regexp.MustCompile(`\b[sr]k[-_](live|test|proj|ant)[-_][A-Za-z0-9_-]{16,}|\bsk-[A-Za-z0-9]{32,}\b`)},
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

// MaxCredential is how many bytes of a text CredentialIn looks at together at most.
const MaxCredential = 4096

// CredentialIn names the kind of credential that stands somewhere in a text of any kind,
// or returns "". It looks for shapes that no other text has; a password is in no table.
func CredentialIn(text []byte) string {
	for _, sh := range credentialShapes() {
		for _, start := range sh.starts {
			if sh.standsIn(text, []byte(start)) {
				return sh.name
			}
		}
	}
	return ""
}

// standsIn looks at each place where a text has the start of a credential that is no part of
// another word.
func (sh shape) standsIn(text, start []byte) bool {
	for from := 0; ; {
		i := bytes.Index(text[from:], start)
		if i < 0 {
			return false
		}
		at := from + i
		inWord := at > 0 && isWord(text[at-1]) && isWord(start[0])
		if !inWord && sh.re.Match(text[at:min(len(text), at+cmp.Or(sh.length, longest))]) {
			return true
		}
		from = at + len(start)
	}
}

func isWord(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}

const credentialHint = "put it where the host keeps secrets and name it by auth.ref (AIP-19)"

// refuseCredentials reports every scalar below v that holds a credential, by
// its key or by its shape, and marks it, so that its value is said nowhere.
func (v value) refuseCredentials() {
	if v.present() && !v.described() {
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
