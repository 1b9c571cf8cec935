package bundle

import (
	"path"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
)

// Stays says why a path has no place in any bundle, also one that others made, or "": its
// content is about one machine, or would be believed on another.
func Stays(p string) string {
	names := strings.Split(p, "/")
	for _, name := range names {
		switch strings.ToLower(name) {
		case ".git":
			return "a repository of git, with what was deleted and programs that git runs"
		case ".secrets":
			return "secrets (AIP-19)"
		}
	}
	last := strings.ToLower(names[len(names)-1])
	switch {
	case strings.EqualFold(names[0], ".wsmount"):
		return "the control directory of a mount"
	case last == "secrets.md" || strings.HasSuffix(last, ".secrets.md"):
		return "an inventory of secrets (AIP-19)"
	}
	return ""
}

// private are names of files and directories in which programs keep credentials, as
// patterns of package path.
var private = []string{
	".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".git-credentials", ".pypirc", ".npmrc", ".htpasswd", ".vault-token",
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
	"*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.tfstate", "*.tfvars",
}

// examples are the ends of names of files that only show the form of such a file.
var examples = []string{".example", ".sample", ".template", ".dist"}

// keepsCredentials reports whether programs keep credentials under a name.
func keepsCredentials(name string) bool {
	name = strings.ToLower(name)
	if slices.ContainsFunc(examples, func(end string) bool { return strings.HasSuffix(name, end) }) {
		return false
	}
	return slices.ContainsFunc(private, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok })
}

// A scanner looks for credentials in the bytes that are written to it.
type scanner struct {
	buf   []byte
	found string // kind of the first credential; "": none so far
}

// Write implements io.Writer. It never fails.
func (s *scanner) Write(b []byte) (int, error) {
	if s.found == "" {
		s.buf = append(s.buf, b...)
		if s.found = mountspec.CredentialIn(s.buf); len(s.buf) > mountspec.MaxCredential {
			s.buf = append(s.buf[:0], s.buf[len(s.buf)-mountspec.MaxCredential:]...) // it may go on
		}
	}
	return len(b), nil
}
