package mountspec

import (
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// TestCredentialNames has one key that is refused and one that only resembles
// it for every name of the table.
func TestCredentialNames(t *testing.T) {
	pairs := map[string][2]string{
		"accesskey":             {"access_key", "access_keys_file"},
		"accesskeyid":           {"accessKeyId", "access_key_id_ref"},
		"accesstoken":           {"access_token", "access_tokens"},
		"accountkey":            {"accountKey", "account_keys"},
		"apikey":                {"api_key", "api_key_name"},
		"apitoken":              {"api-token", "api_token_ref"},
		"authtoken":             {"auth_token", "auth_token_url"},
		"bearertoken":           {"bearerToken", "bearer_token_file"},
		"clientsecret":          {"client_secret", "client_secret_ref"},
		"connectionstring":      {"connectionString", "connection_strings_ref"},
		"credential":            {"credential", "useDefaultCredentialChain"},
		"credentials":           {"aws_credentials", "credentials_ref"},
		"encryptionkey":         {"encryption_key", "encryption_key_id"},
		"idtoken":               {"id_token", "id_token_audience"},
		"passphrase":            {"key_passphrase", "passphrase_ref"},
		"passwd":                {"passwd", "passwd_file"},
		"password":              {"db_password", "password_ref"},
		"privatekey":            {"private_key", "private_key_path"},
		"refreshtoken":          {"refreshToken", "refresh_token_ref"},
		"sastoken":              {"sasToken", "sas_token_ref"},
		"sastokens":             {"sas_tokens", "sas_tokens_ref"},
		"secret":                {"secret", "secret_ref"},
		"secretaccesskey":       {"AWS_SECRET_ACCESS_KEY", "secret_access_key_ref"},
		"secretkey":             {"secret_key", "secret_key_name"},
		"sessiontoken":          {"session-token", "session_token_ttl"},
		"sharedkey":             {"shared_key", "shared_key_ref"},
		"sharedaccesssignature": {"sharedAccessSignature", "shared_access_signature_ref"},
		"signingkey":            {"signing_key", "signing_key_id"},
		"token":                 {"token", "token_ref"},
		"pat":                   {"pat", "compat"},
	}
	for _, name := range credentialNames {
		pair, listed := pairs[name]
		if !listed {
			t.Errorf("no test for the name %q", name)
			continue
		}
		assert.True(t, credentialKey(pair[0]), name, "the key", pair[0], "is accepted")
		assert.False(t, credentialKey(pair[1]), name, "the key", pair[1], "is refused")
	}
}

// TestCredentialShapes has one value that is refused and one that only
// resembles it for every shape of the table. The samples are put together
// here, so that no scanner of this repository finds one.
func TestCredentialShapes(t *testing.T) {
	letters := strings.Repeat("aB3", 40)
	pairs := map[string][2]string{
		"an AWS access key id":           {"AKIA" + "ABCDEFGHIJKLMNOP", "AKIA-is-how-they-begin"},
		"an AWS secret access key":       {letters[:40], strings.Repeat("0a", 20)},
		"a GitHub token":                 {"ghp" + "_" + letters[:36], "ghp_short"},
		"a GitLab token":                 {"glpat" + "-" + letters[:20], "glpat-short"},
		"a Slack token":                  {"xoxb" + "-1234567890-abc", "xoxb-"},
		"a Google API key":               {"AIza" + letters[:35], "AIzaShort"},
		"a Google OAuth token":           {"ya29" + "." + letters[:30], "ya29.x"},
		"a private key":                  {"-----BEGIN RSA " + "PRIVATE KEY-----", "-----BEGIN PUBLIC KEY-----"},
		"an Azure account key":           {"DefaultEndpointsProtocol=https;" + "AccountKey=abc", "AccountName=abc"},
		"a JSON web token":               {"eyJhbGciOiJI." + "eyJzdWIiOiIx.sig", "eyJhbGciOiJI"},
		"an npm token":                   {"npm" + "_" + letters[:36], "npm_config_cache"},
		"a PyPI token":                   {"pypi" + "-" + letters[:20], "pypi-mirror"},
		"a Hugging Face token":           {"hf" + "_" + letters[:34], "hf_datasets"},
		"an API secret key":              {"sk" + "_live_" + letters[:24], "sk_live_x"},
		"an authorization header":        {"Bearer " + letters[:20], "bearer of news"},
		"user info in a URL":             {"https://" + "me:pw@host/x", "https://host/@x"},
		"a credential in a URL's query":  {"https://host/x?a=1&" + "sig=abc", "https://host/x?design=abc"},
		"user info without password":     {"https://" + "token@host", "operator://bob@acme"},
		"an Azure account key by itself": {strings.Repeat("aB3+", 21) + "aB" + "==", strings.Repeat("aB3+", 4) + "=="},
	}
	for _, sh := range credentialShapes() {
		pair, listed := pairs[sh.name]
		if !listed {
			t.Errorf("no test for %s", sh.name)
			continue
		}
		assert.Equal(t, credentialShape(pair[0]), sh.name, pair[0], "looks like")
		if sh.starts != nil {
			assert.Equal(t, CredentialIn([]byte("x = "+pair[0]+";")), sh.name, "in a text")
			assert.Equal(t, CredentialIn([]byte("x = "+pair[1]+";")), "", pair[1], "in a text")
		}
	}
	for name, pair := range pairs {
		assert.False(t, credentialShape(pair[0]) == "", name, pair[0], "is accepted")
		assert.Equal(t, credentialShape(pair[1]), "", name, pair[1], "looks like")
	}
}

// TestCredentialsAreNotSaid puts a credential wherever a storage or sandbox
// block has room, and looks for it in what is said.
func TestCredentialsAreNotSaid(t *testing.T) {
	secret := "ghp" + "_" + strings.Repeat("z9Q", 12)
	for _, c := range []struct{ kind, lines string }{
		{"STORAGE", "config: { bucket: «" + secret + " }\n"},
		{"STORAGE", "config: { bucket: files, token: «hunter2" + secret + " }\n"},
		{"STORAGE", "config: { bucket: files, «" + secret + ": x }\n"},
		{"STORAGE", "provider: «" + secret + "\n"},
		{"STORAGE", "provider: self-bucket\nconfig: { kind: s3, bucket: files, endpoint: «\"https://" + secret + "@h.test\" }\n"},
		{"STORAGE", "metadata: { a: [{ b: «" + secret + " }] }\n"},
		{"STORAGE", "auth: { state: { env: [«" + secret + "] } }\n"},
		{"STORAGE", "auth: { ref: «" + secret + " }\n"},
		{"STORAGE", "exclude: [«" + secret + "]\n"},
		{"STORAGE", "sync: { pull: { on: «" + secret + " } }\n"},
		{"SANDBOX", "config: { x: { y: «" + secret + " } }\n"},
		{"SANDBOX", "config: { password: «" + secret + " }\n"},
		{"WORKSPACE", "storage: { inline: { provider: dev-local, config: { root: «" + secret + " } } }\n"},
		{"WORKSPACE", "version: «" + secret + "\n"},
		{"WORKSPACE", "id: «" + secret + "\n"},
		{"WORKSPACE", "«" + secret + ": 1\n"},
		{"WORKSPACE", "storage: { ref: «/" + secret + " }\n"},
		{"SECRETS", "secrets: [{ slug: one, name: O, description: d, value: «" + secret + " }]\n"},
		{"SECRETS", "secrets: [{ slug: one, name: O, description: d, metadata: { x: [«" + secret + ", y] } }]\n"},
		{"SECRETS", "secrets: [{ slug: one, name: O, description: d, tags: [«" + secret + "] }]\n"},
		{"SECRETS", "secrets: [{ slug: one, name: «" + secret + ", description: d }]\n"},
	} {
		text, line, _ := ruleCase{kind: c.kind, lines: c.lines}.text(t)
		got, findings := parseKind(c.kind+".md", []byte(text), Options{})
		assert.True(t, got == nil && len(findings.Filter(Error)) == 1 && findings[0].Line == line, c.kind, "accepted, or on another line", text, findings)
		said := findings.Error()
		assert.True(t, !strings.Contains(said, secret) && !strings.Contains(said, "hunter2"), "the credential is repeated:", said)
	}
}

// A credential that is a key is refused for what it is, at any depth.
func TestCredentialAsAKey(t *testing.T) {
	secret := "ghp" + "_" + strings.Repeat("z9Q", 12)
	for _, inside := range []string{"bucket: files, «" + secret + ": x", "x: { y: { «" + secret + ": x } }"} {
		text, _, _ := ruleCase{kind: "STORAGE", lines: "metadata: { " + inside + " }\n"}.text(t)
		_, findings := parseKind("STORAGE.md", []byte(text), Options{})
		assert.Contains(t, findings.Error(), "a key here looks like")
	}
}

// A directory may be called anything; the same text under another key is still
// refused.
func TestPathThatLooksLikeACredential(t *testing.T) {
	path := "/tmp/Build2574258259/001/notesAndMoreXYZ"
	assert.Must(t, len(path) == 40 && credentialShape(path) != "", path, "does not look like a credential, so this shows nothing")
	for config, want := range map[string]bool{
		"mount_path: " + path:                 true,
		"mount_path: /x\n  agent_id: " + path: false,
	} {
		src := "---\nschema: storage/v1\nid: \"@a/b\"\nversion: 1.0.0\nprovider: local-fs\nconfig:\n  " + config + "\n---\n"
		_, f := ParseStorage(Source{Name: "STORAGE.md", Data: []byte(src)}, Options{})
		assert.Equal(t, f.Err() == nil, want, config, "accepted", f)
	}
}

// In a text of any kind only what nothing else looks like is a credential.
func TestCredentialIn(t *testing.T) {
	for text, want := range map[string]string{
		"use ghp_" + strings.Repeat("a1", 18) + " for it": "a GitHub token",
		"key = AKIAIOSFODNN7EXAMPLE":                      "an AWS access key id",
		"x\n-----BEGIN OPENSSH PRIVATE KEY-----\n":        "a private key",
		"see https://ann@acme.test/?token=x":              "",
		"Authorization: Bearer abcdefghijklmnopqrst":      "",
		"disk-" + strings.Repeat("a1", 18):                "",
		"password: hunter2":                               "",
		strings.Repeat("aB3", 13) + "x":                   "",
	} {
		assert.Equal(t, CredentialIn([]byte(text)), want, text)
	}
}
