package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// gitDir is the target of .git. The git program names it in front of every refusal to write
// there, so the name tells a person the way to commit.
const gitDir = ".git-is-read-only--commit-with--wsmount-commit"

// notHere is the name of the remote from which git would fetch content that a clone is without:
// git names it when it refuses. git cannot fetch such content, but a read of the file does.
const notHere = "content-that-has-not-come-yet--see--wsmount-status"

// gitFile is the path of the file .git in the tree that Inspect shows, and changedDir that of the
// files changed since a commit.
const (
	gitFile    = "gitfile"
	changedDir = "changed"
	packDir    = "objects/pack"
)

// Inspect implements providers.Inspector: the tree is a work tree of the git program, which can
// change nothing of the repository. .git has the objects and references of this repository and an
// index of the head, and finds changes since then by reading a file.
func (p *Provider) Inspect(root string, covered []string, work providers.Changes) providers.Inspection {
	g := &gitTree{p: p, root: root, hide: excludes(covered), work: work, since: p.o.Now()}
	return providers.Inspection{Names: map[string]string{".git": gitFile, gitDir: ""}, Show: g.show}
}

// gitTree is the .git that the git program finds.
type gitTree struct {
	p     *Provider
	root  string // where the work tree is
	hide  string // the ignore rules for other entries in it
	work  providers.Changes
	since time.Time

	indices indices
}

func (g *gitTree) show(ctx context.Context, at string) (providers.Exhibit, error) {
	return do(ctx, g.p, providers.MethodStat, providers.Locator{}, func() (providers.Exhibit, error) { return g.exhibit(ctx, at) })
}

func (g *gitTree) exhibit(ctx context.Context, at string) (providers.Exhibit, error) {
	switch at {
	case "":
		return g.dir("HEAD", changedDir+"/", "config", "index", "info/", "objects/", "packed-refs", "refs/"), nil
	case changedDir, "objects/info", "refs":
		return g.dir(), nil
	case "info":
		if g.hide == "" {
			return g.dir(), nil
		}
		return g.dir("exclude"), nil
	case "info/exclude":
		if g.hide != "" {
			return g.text(g.hide), nil
		}
	case "objects":
		return g.dir("info/", "pack/"), nil
	case packDir:
		return g.dir(g.p.repo.objects.Files()...), nil
	case gitFile:
		return g.text("gitdir: " + gitDir + "\n"), nil
	case "HEAD":
		return g.text("ref: " + g.p.head.ref() + "\n"), nil
	case "config":
		return g.text(g.config()), nil
	case "packed-refs":
		return g.refs()
	case "index":
		return g.index(ctx)
	}
	switch dir, name := path.Split(at); strings.TrimSuffix(dir, "/") {
	case packDir:
		return g.pack(name)
	case changedDir:
		return g.changed(ctx, name)
	}
	return providers.Exhibit{}, providers.ErrNotExist
}

func (g *gitTree) dir(names ...string) providers.Exhibit {
	return providers.Exhibit{Names: append([]string{}, names...), Time: g.since, Lasting: true}
}

func (g *gitTree) text(s string) providers.Exhibit {
	sum := sha256.Sum256([]byte(s))
	return providers.Exhibit{Size: int64(len(s)), Time: g.since, Version: string(sum[:]),
		Open: func() (providers.ExhibitFile, error) { return textFile{bytes.NewReader([]byte(s))}, nil }}
}

type textFile struct{ *bytes.Reader }

func (textFile) Close() error { return nil }

// excludes are the rules of an ignore file for paths, which are taken as they are.
func excludes(paths []string) string {
	var b strings.Builder
	for _, path := range paths {
		if !strings.Contains(path, "\n") {
			b.WriteString("/" + strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path) + "/\n")
		}
	}
	return b.String()
}

// config is the repository's. A person's settings for all repositories must not keep the git
// program from asking for changes, nor have it convert content.
func (g *gitTree) config() string {
	tracked := g.p.origin.branch
	var b strings.Builder
	version, partial := 0, ""
	if g.p.repo.partialState() != "" {
		version, partial = 1, "[extensions]\n\tpartialClone = "+notHere+"\n[remote "+quote(notHere)+"]\n\turl = "+quote(notHere)+
			"\n\tpromisor = true\n\tpartialclonefilter = blob:none\n\tskipFetchAll = true\n"
	}
	fmt.Fprintf(&b, "[core]\n\trepositoryformatversion = %d\n", version)
	b.WriteString("\tbare = false\n\tfilemode = true\n\tsymlinks = true\n\tautocrlf = false\n\tuntrackedCache = true\n" +
		"\tfsmonitorHookVersion = 2\n\tfsmonitor = " + quote(`f() { cat "`+gitDir+"/"+changedDir+`/$2"; }; f`) + "\n" +
		"[filter \"lfs\"]\n\tclean =\n\tsmudge =\n\tprocess =\n\trequired = false\n" +
		"[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n" + partial)
	fmt.Fprintf(&b, "[remote \"origin\"]\n\turl = %s\n\ttagOpt = --no-tags\n\tfetch = %s\n", quote(g.p.repo.state.URL),
		quote("+refs/heads/"+tracked+":"+originRef(tracked)))
	for _, branch := range slices.Compact([]string{tracked, g.p.head.on()}) {
		fmt.Fprintf(&b, "[branch %s]\n\tremote = origin\n\tmerge = %s\n", quote(branch), quote(headRef(tracked)))
	}
	return b.String()
}

// refs are those of a clone: branches, the local ones and the server's as last seen.
func (g *gitTree) refs() (providers.Exhibit, error) {
	text := "# pack-refs with: peeled fully-peeled sorted \n"
	for _, below := range []string{headRef(""), originRef("")} { // in the order of names
		all, err := g.p.repo.refs.List(below)
		if err != nil {
			return providers.Exhibit{}, err
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			text += all[name].String() + " " + name + "\n"
		}
	}
	return g.text(text), nil
}

// pack is a file of the object database, which never changes.
func (g *gitTree) pack(name string) (providers.Exhibit, error) {
	store := g.p.repo.objects
	size, err := store.FileSize(name)
	if errors.Is(err, odb.ErrNotFound) {
		err = providers.ErrNotExist
	}
	if err != nil {
		return providers.Exhibit{}, err
	}
	return providers.Exhibit{Size: size, Time: g.since, Version: name, Lasting: true,
		Open: func() (providers.ExhibitFile, error) {
			f, err := store.OpenFile(name)
			if errors.Is(err, odb.ErrNotFound) || errors.Is(err, os.ErrNotExist) { // it has become a part of another
				return nil, providers.ErrConflict
			}
			return f, err
		}}, nil
}

// changed answers the git program, which has an index of some commit and asks for paths that may
// differ from it (githooks, fsmonitor-watchman, version 2): the commit to ask from the next time,
// and paths. "/" is all of them.
func (g *gitTree) changed(ctx context.Context, since string) (providers.Exhibit, error) {
	from, err := g.p.repo.commitOf(providers.Revision(since))
	if err != nil {
		return providers.Exhibit{}, providers.ErrNotExist
	}
	head, paths, err := g.work(ctx)
	if err != nil {
		return providers.Exhibit{}, err
	}
	to, err := g.p.repo.commitOf(head)
	if err != nil {
		return providers.Exhibit{}, err
	}
	if from != to {
		more, err := g.p.repo.between(from, to)
		if err != nil {
			return providers.Exhibit{}, err
		}
		paths = append(paths, more...)
	}
	return g.text(strings.Join(append([]string{string(head)}, paths...), "\x00") + "\x00"), nil
}
