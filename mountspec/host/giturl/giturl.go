// Package giturl reads the URL of a git server, and that of one of its repositories. It knows
// both ways in which git writes the address of a server over SSH, and promises that no
// error shows a URL, which may hold a password, and that a URL it accepts has no character
// that a server's shell would read.
//
//	server, err := giturl.Parse("git@git.acme.test:")                         // ssh://git@git.acme.test/~
//	owner, repo, err := giturl.Below(server, "git@git.acme.test:acme/site.git") // acme, site
package giturl

import (
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/wsmount/wsmount/mountspec/netguard"
)

// Hint is how a URL is written.
const Hint = "write it like https://git.acme.test, ssh://git@git.acme.test:22 or git@git.acme.test:"

// scpLike is [user@]host:path, as git and scp take it; a path with "//" after
// the colon is that of a URL.
var scpLike = regexp.MustCompile(`^(?:([A-Za-z0-9._-]+)@)?([A-Za-z0-9._-]+):(.*)$`)

// sshLogin and sshPath match a login and the path of a repository: the server's
// shell reads the path.
var (
	sshLogin = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)
	sshPath  = regexp.MustCompile(`^[A-Za-z0-9._~/+@-]*$`)
)

// Parse reads a URL of http or https, one of git, or one of ssh in either of the ways that
// git takes. A path that scp would begin in the login's home begins with /~/ in the URL
// that it returns, which has no slash at its end.
func Parse(s string) (string, error) {
	if m := scpLike.FindStringSubmatch(s); m != nil && !strings.HasPrefix(m[3], "//") {
		s = "ssh://" + m[2]
		if m[1] != "" {
			s = "ssh://" + m[1] + "@" + m[2]
		}
		if !strings.HasPrefix(m[3], "/") {
			s += "/~/"
		}
		s += m[3]
	}
	if err := check(s); err != nil {
		return "", err
	}
	s = strings.TrimRight(s, "/")
	if scheme := strings.ToLower(s[:3]); scheme == "ssh" || scheme == "git" { // callers compare it
		s = scheme + s[3:]
	}
	return s, nil
}

func check(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		return errors.New("it is not a URL")
	}
	_, password := u.User.Password()
	switch isSSH := u.Scheme == "ssh"; {
	case !isSSH && u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "git":
		return errors.New("its scheme is not https, http, ssh or git")
	case password:
		return errors.New("it holds a password: credentials belong into secrets")
	case u.User != nil && !isSSH:
		return errors.New("it holds a user, which only a URL of ssh may")
	case u.User != nil && !sshLogin.MatchString(u.User.Username()):
		return errors.New("its user is not a login")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "":
		return errors.New("must be scheme, host, port and at most a path")
	case isSSH && (!sshPath.MatchString(u.Path) || strings.HasPrefix(u.Path, "/-")):
		return errors.New("its path has characters that a shell would read")
	case u.Scheme == "git" && !sshPath.MatchString(u.Path):
		return errors.New("its path has characters that a daemon need not take")
	}
	return netguard.ValidatePattern(u.Scheme + "://" + u.Host)
}

// Below is the repository that a URL names at a server, which Parse returned.
func Below(server, text string) (owner, repo string, err error) {
	s, err := Parse(text)
	if err != nil {
		return "", "", err
	}
	path, ok := strings.CutPrefix(s, server+"/")
	owner, repo, two := strings.Cut(strings.TrimSuffix(path, ".git"), "/")
	switch {
	case !ok:
		return "", "", errors.New("it is not at " + server + ", the git server of the host configuration")
	case !two || owner == "" || repo == "" || strings.Contains(repo, "/"):
		return "", "", errors.New("it names no repository as OWNER/REPO")
	}
	return owner, repo, nil
}
