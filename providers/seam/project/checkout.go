package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/wsmount/wsmount/providers"
)

// checkout is a directory of this machine with a project's files.
type checkout struct {
	root string // its real name
	slug string // the slug in its own files; "": none
	says string // the file with that slug
	// repository is the directory of its git repository, which all its work trees share; "": it
	// has none, or only claims to be a work tree of another.
	repository string
	own        []registration // checkouts that this machine remembers
}

// checkoutOf finds the root of the checkout that a directory lies in: the nearest that is
// registered, or has state or a git repository; else the directory itself.
func checkoutOf(dir string, list []Repo) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("%q is not absolute: %w", dir, providers.ErrInvalid)
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("the checkout cannot be reached: %w", err)
	}
	registered := sync.OnceValue(func() map[string]bool { // may take a while
		roots := map[string]bool{}
		for _, s := range sight(list) {
			roots[s.real] = true
		}
		return roots
	})
	for at := dir; ; at = filepath.Dir(at) {
		for _, sign := range []string{harness, gitDir} {
			_, err := os.Lstat(filepath.Join(at, sign))
			if err == nil {
				return at, nil
			}
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
				return "", fmt.Errorf("the checkout of %s is not known: %w", dir, err)
			}
		}
		if registered()[at] {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return dir, nil
		}
	}
}

// realRoot is the real name of a registered checkout; where it does not exist, as on another
// machine, the registered name.
func realRoot(root string) string {
	if filepath.IsAbs(root) {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			return real
		}
	}
	return filepath.Clean(root)
}

// readCheckout reads a checkout's own files for its project, as agentm does: vault_project in its
// project.json, the repository that this names at GitHub, or the git remote origin, whichever is
// first.
func readCheckout(root string) (checkout, error) {
	repository, origin, err := readGit(root)
	c := checkout{root: root, repository: repository, says: filepath.Join(root, harness, "project.json")}
	if err == nil {
		c.slug, err = declared(c.says)
	}
	if err != nil {
		return c, err
	}
	if c.slug == "" {
		c.slug, c.says = lastName(origin), "its git remote origin"
	}
	if c.slug == "" {
		return c, nil
	}
	if err := checkSlug(c.slug); err != nil {
		return c, &UnclearError{What: fmt.Sprintf("%s: %s says %v", root, c.says, err), Do: give}
	}
	return c, nil
}

// declared is the slug in a project.json.
func declared(name string) (string, error) {
	text, err := readFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var said struct {
		Project string `json:"vault_project"`
		GitHub  struct {
			Repo string `json:"repo"`
		} `json:"github"`
	}
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	if err != nil {
		return "", &UnclearError{What: fmt.Sprintf("what %s says is not known: %v", name, err), Do: "mend the file or remove it"}
	}
	if slug := strings.TrimSpace(said.Project); slug != "" {
		return slug, nil
	}
	return lastName(said.GitHub.Repo), nil
}

// lastName is the name of a repository at the end of a URL, or of OWNER/NAME.
func lastName(of string) string {
	of = strings.TrimRight(strings.TrimSpace(of), "/")
	return strings.TrimSuffix(of[strings.LastIndexAny(of, "/:")+1:], ".git")
}

// mostOfFile bounds the size of such a file.
const mostOfFile = 1 << 20

// readFile reads a small file of a checkout, and waits for no FIFO.
func readFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENOTDIR) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	text, err := io.ReadAll(io.LimitReader(f, mostOfFile+1))
	if err == nil && len(text) > mostOfFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, mostOfFile)
	}
	return text, err
}

// UnclearError says that the project of a checkout is not clear, or that two would be one. It is
// providers.ErrInvalid, and nothing was done.
type UnclearError struct{ What, Do string }

// Error is What.
func (e *UnclearError) Error() string { return e.What }

// Unwrap is providers.ErrInvalid.
func (e *UnclearError) Unwrap() error { return providers.ErrInvalid }

const give = `give the checkout a slug of its own, as {"vault_project": "SLUG"} in its .harness/project.json`

// ErrNone says that the project of a checkout cannot be found. It is
// providers.ErrNotExist.
var ErrNone = fmt.Errorf("the checkout is not registered, and neither its .harness/project.json nor a git remote says which project it is of: %w", providers.ErrNotExist)

// slugOf is the slug of a checkout: that of its own files, or else the registered one. Two that
// do not agree are refused, and so is one that is registered for another checkout of this machine
// too, however both came to be registered. asked is the slug that it was asked for by, and is
// registered with; "": it was not.
func slugOf(c checkout, list []Repo, asked string) (string, error) {
	if c.slug != "" && slices.ContainsFunc(list, func(r Repo) bool { return r.Slug == c.slug && r.isAt(c.root) }) {
		// So nothing else is looked at, which may take a while.
		list = slices.DeleteFunc(slices.Clone(list), func(r Repo) bool { return r.Slug != c.slug })
	}
	var own []string
	all := c.sight(list)
	for i, s := range all {
		if s.is(c) {
			own = append(own, list[i].Slug)
		}
	}
	slug, err := c.choose(own, asked)
	if err != nil {
		return "", err
	}
	for i, s := range all {
		if list[i].Slug != slug {
			continue
		}
		if err := list[i].refuse(c, s); err != nil {
			return "", err
		}
	}
	return slug, nil
}

// choose is the slug of a checkout that is registered with some of its own.
func (c checkout) choose(own []string, asked string) (string, error) {
	switch {
	case c.slug != "" && len(own) > 0 && !slices.Contains(own, c.slug):
		return "", &UnclearError{What: fmt.Sprintf("%s is of %q, as %s says, and is registered with %q", c.root, c.slug, c.says, own),
			Do: "register it with that slug and unregister the other, or write the other into its .harness/project.json as vault_project, so that agentm knows it too"}
	case asked != "":
		return asked, nil
	case c.slug != "":
		return c.slug, nil
	case len(own) == 1:
		return own[0], nil
	case len(own) > 1:
		return "", &UnclearError{What: fmt.Sprintf("%s is registered with each of %q", c.root, own), Do: "name one of them"}
	}
	return "", fmt.Errorf("%s: %w", c.root, ErrNone)
}

// sight looks at the roots of a list; the checkout's own root is known to exist.
func (c checkout) sight(list []Repo) []seen {
	var others []Repo
	for _, r := range list {
		if !r.isAt(c.root) {
			others = append(others, r)
		}
	}
	asked, all := sight(others), make([]seen, len(list))
	for i, r := range list {
		if r.isAt(c.root) {
			all[i] = seen{real: c.root, here: true}
			continue
		}
		all[i], asked = asked[0], asked[1:]
		all[i].recall(r, c.own)
	}
	return all
}

// isAt reports whether it is registered with a checkout's real name.
func (r Repo) isAt(root string) bool { return filepath.Clean(r.Root) == root }

// refuse refuses the slug of r to a checkout if another of this machine has it, or may have it.
func (r Repo) refuse(c checkout, s seen) error {
	switch {
	case s.is(c):
		return nil
	case s.here:
		return &UnclearError{What: fmt.Sprintf("%s would have the memory of %q, which is registered for %s: one would replace what the other keeps", c.root, r.Slug, r.Root),
			Do: give + ", or let it keep its state to itself, with local in its .harness/" + modeFile + ", or " + r.settle()}
	case s.silent:
		return r.unseen(c.root)
	case s.gone:
		return &UnclearError{What: fmt.Sprintf("%q is registered for %s of this machine, which is not there any more: whether %s is that checkout, moved, is not known", r.Slug, r.Root, c.root),
			Do: fmt.Sprintf("if it was moved, or is to take its place: `wsmount store repos register %s --root DIR`; else mount what it lies on, or %s", r.Slug, give)}
	}
	return nil
}

// unseen refuses a slug where it cannot be known whether its checkout is another.
func (r Repo) unseen(root string) error {
	return &UnclearError{What: fmt.Sprintf("%q is registered for %s, which does not answer: whether %s is another checkout is not known", r.Slug, r.Root, root),
		Do: "let it be reached, or unmount what does not answer, or " + r.settle()}
}

// away refuses a slug whose checkout is missing: the checkout's setting for the place of its
// state is not known.
func (r Repo) away() error {
	return &UnclearError{What: fmt.Sprintf("%q is registered for %s, which is not there on this machine: whether its state lies in memory or in that checkout is not known", r.Slug, r.Root),
		Do: fmt.Sprintf("if it was moved, or lies elsewhere: `wsmount store repos register %s --root DIR`; else mount what it lies on", r.Slug)}
}

func (r Repo) settle() string {
	return fmt.Sprintf("say which of them it is on this machine: `wsmount store repos register %s --root DIR`", r.Slug)
}

// claim registers a slug for a checkout, unless it is registered: the next checkout of this
// machine with the same slug is then refused. One that is registered on another machine stays the
// first.
func claim(ctx context.Context, own Own, p Project) error {
	c, err := readCheckout(p.Root)
	if err == nil {
		c.own, err = own.list(ctx)
	}
	if err != nil {
		return err
	}
	var roots []string // of the checkout, as registered
	var refused error
	err = change(ctx, p.Backend, func(r *registry) bool {
		refused, roots = nil, nil
		i := r.find(p.Slug)
		if i < 0 {
			roots = []string{p.Root}
			r.entries = append(r.entries, object{{keySlug, text(p.Slug)}, {keyRoot, text(p.Root)}})
			return true
		}
		all, err := reposOf(r.entries[i])
		if err != nil {
			refused = err
			return false
		}
		for j, s := range c.sight(all) {
			if s.here && s.is(c) {
				roots = append(roots, all[j].Root)
			}
			if refused = all[j].refuse(c, s); refused != nil {
				return false
			}
		}
		if len(roots) > 0 {
			return false
		}
		roots = []string{p.Root}
		r.entries[i].addRoot(p.Root)
		return true
	})
	if err = errors.Join(err, refused); err != nil {
		return err
	}
	return own.remember(ctx, c, p.Slug, roots...)
}
