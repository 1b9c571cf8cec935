// Package person finds the people for whom operator://current and user://current stand: a name
// and a mail address, as a commit has them (AIP-23, Resolution).
package person

import (
	"context"
	"errors"
	"net/mail"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A Person is an author of commits.
type Person struct{ Name, Email string }

// Parse reads "NAME <mail>".
func Parse(s string) (Person, error) {
	a, err := mail.ParseAddress(s)
	switch {
	case err != nil, strings.ContainsAny(s, "\r\n"):
		return Person{}, errors.New("not of the form NAME <mail>")
	case a.Name == "":
		return Person{}, errors.New("there is no name before the address")
	case strings.ContainsAny(a.Name, "<>"):
		return Person{}, errors.New("a name cannot hold < or >")
	}
	return Person{a.Name, a.Address}, nil
}

// patience bounds a git that hangs, on a home directory that does not answer for one.
const patience = 10 * time.Second

// OfGit is the user that git knows on this machine, whichever repository the working
// directory is in. Without git, or where it does not know both the name and the address,
// there is none.
func OfGit(ctx context.Context) (Person, bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "config", "--null", "--get-regexp", `^user\.(name|email)$`)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "GIT_DIR="+os.DevNull) // the machine's and the user's configuration alone
	out, err := cmd.Output()
	if err != nil {
		return Person{}, false
	}
	var p Person
	for set := range strings.SplitSeq(string(out), "\x00") {
		switch key, value, _ := strings.Cut(set, "\n"); key {
		case "user.name":
			p.Name = value
		case "user.email":
			p.Email = value
		}
	}
	if _, err := mail.ParseAddress(p.Email); err != nil || strings.TrimSpace(p.Name) == "" || strings.ContainsAny(p.Name, "<>\r\n") {
		return Person{}, false
	}
	return p, true
}
