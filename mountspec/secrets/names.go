package secrets

import (
	"regexp"
	"strings"
)

// fieldOf is the field that a well-known environment name means.
var fieldOf = map[string]string{
	"AWS_ACCESS_KEY_ID":               "access_key_id",
	"AWS_SECRET_ACCESS_KEY":           "secret_access_key",
	"AWS_SESSION_TOKEN":               "session_token",
	"AZURE_STORAGE_ACCOUNT":           "account_name",
	"AZURE_STORAGE_KEY":               "account_key",
	"AZURE_STORAGE_CONNECTION_STRING": "connection_string",
	"AZURE_STORAGE_SAS_TOKEN":         "sas_token",
	"GOOGLE_APPLICATION_CREDENTIALS":  "credentials_file",
	"GITHUB_TOKEN":                    "token",
	"GH_TOKEN":                        "token",
	"GITHUB_INSTALLATION_TOKEN":       "token",
}

// Protocols that decide which environment names are usual.
const (
	S3     = "s3"
	Azure  = "azure"
	GCS    = "gcs"
	GitHub = "github"
)

var usual = map[string][]string{
	S3:     {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"},
	Azure:  {"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_SAS_TOKEN"},
	GCS:    {"GOOGLE_APPLICATION_CREDENTIALS"},
	GitHub: {"GITHUB_TOKEN", "GH_TOKEN", "GITHUB_INSTALLATION_TOKEN"},
}

// Field is the name of the field that an environment name means: the usual
// one, or the name itself in lower case.
func Field(env string) string {
	if f, ok := fieldOf[env]; ok {
		return f
	}
	return strings.ToLower(env)
}

// SlugOf is AIP-19's rule for an environment name that no inventory entry
// claims: lower case, dashes.
func SlugOf(env string) string { return strings.ReplaceAll(strings.ToLower(env), "_", "-") }

var envName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)

// IsEnvName says whether s can be an environment name (AIP-19, exposures).
func IsEnvName(s string) bool { return len(s) <= 128 && envName.MatchString(s) }

// ownerOfSlug is the owner that org/<owner>/<name> belongs to.
func ownerOfSlug(slug string) (string, bool) {
	p := strings.Split(slug, "/")
	if len(p) == 3 && p[0] == "org" && p[1] != "" && p[2] != "" {
		return p[1], true
	}
	return "", false
}
