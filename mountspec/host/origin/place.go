package origin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec/host/giturl"
)

// GitHub is the kind of place that is a git repository; the others are kinds of buckets,
// as a manifest names them.
const GitHub = "github"

// kinds are those of all places.
var kinds = []string{GitHub, "s3", "azure", "gcs"}

// PlaceHint is how a place is written.
const PlaceHint = "write github:OWNER/REPO[#BRANCH], or s3:, azure: or gcs:BUCKET[/PREFIX]"

// A Place is a repository, or a part of a bucket, as a person writes it:
// github:OWNER/REPO[#BRANCH], s3:BUCKET[/PREFIX], azure:CONTAINER[/PREFIX] or
// gcs:BUCKET[/PREFIX].
type Place struct {
	Kind                string
	Owner, Repo, Branch string // of a repository; without Branch: the one of the server's HEAD
	Bucket, Prefix      string // of the others
}

// IsPlace reports whether a text is meant as a place, and not as a path.
func IsPlace(text string) bool {
	kind, _, ok := strings.Cut(text, ":")
	return ok && slices.Contains(kinds, kind)
}

// ParsePlace reads a place.
func ParsePlace(text string) (Place, error) {
	kind, rest, ok := strings.Cut(text, ":")
	if !ok || !slices.Contains(kinds, kind) {
		return Place{}, fmt.Errorf("%.60q is not a place of a workspace", text)
	}
	p := Place{Kind: kind}
	var found bool
	if kind != GitHub {
		p.Bucket, p.Prefix, _ = strings.Cut(rest, "/")
		found = p.Bucket != ""
	} else if rest, p.Branch, ok = strings.Cut(rest, "#"); !ok || p.Branch != "" {
		p.Owner, p.Repo, found = strings.Cut(rest, "/")
		found = found && p.Owner != "" && p.Repo != ""
	}
	if !found {
		return Place{}, fmt.Errorf("%.60q names no repository and no bucket", text)
	}
	return p, nil
}

// AtServer reads the URL of a repository, and of a branch behind "#", at a git server that
// giturl.Parse returned.
func AtServer(server, text string) (Place, error) {
	where, branch, ok := strings.Cut(text, "#")
	if ok && branch == "" {
		return Place{}, errors.New("it names no branch after #")
	}
	owner, repo, err := giturl.Below(server, where)
	if err != nil {
		return Place{}, err
	}
	return Place{Kind: GitHub, Owner: owner, Repo: repo, Branch: branch}, nil
}

// String writes a place as ParsePlace reads it.
func (p Place) String() string {
	if p.Kind != GitHub {
		return strings.TrimSuffix(p.Kind+":"+p.Bucket+"/"+p.Prefix, "/")
	}
	s := p.Kind + ":" + p.Owner + "/" + p.Repo
	if p.Branch != "" {
		s += "#" + p.Branch
	}
	return s
}

// MarshalText implements encoding.TextMarshaler.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Place) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePlace(string(text))
	return err
}
