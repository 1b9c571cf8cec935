package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// Repo is a registered checkout. One slug may have checkouts on several machines.
type Repo struct {
	Slug string
	Root string // its directory, as the machine that registered it calls it
	Wiki string // that of its wiki; "": it has none
}

// Path of the registry, and names of its fields.
var place = []string{"_meta", "repos.json"}

const (
	keyVersion, keyRepos      = "version", "repos"
	keySlug, keyRoot, keyWiki = "slug", "root_path", "wiki_path"
	keyRoots                  = "checkouts" // on machines that do not have the root; agentm does not know it
	version                   = 1
)

// Repos lists the registered checkouts, in the order of registration. A registry that cannot be
// read is providers.ErrCorrupt; only a person can mend it.
func Repos(ctx context.Context, b seam.Backend) ([]Repo, error) {
	l, err := b.Resolve(place...)
	if err != nil {
		return nil, err
	}
	content, err := b.Read(ctx, l)
	if errors.Is(err, providers.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := parseRegistry(l, content)
	if err != nil {
		return nil, err
	}
	var list []Repo
	for _, entry := range r.entries {
		repos, err := reposOf(entry)
		if err != nil {
			return nil, corrupt(l, err)
		}
		list = append(list, repos...)
	}
	return list, nil
}

// Register is Own.Settle without an Own.
func Register(ctx context.Context, b seam.Backend, repo Repo) error {
	_, err := Own{}.Settle(ctx, b, repo)
	return err
}

// Settle adds a repository, or changes the entry of its slug, and makes it the one of this
// machine; a Wiki of "" is left as it is. displaced are the roots that had the slug, of other
// checkouts of this machine, or perhaps of it: the slug is refused to them from now on.
func (o Own) Settle(ctx context.Context, b seam.Backend, repo Repo) (displaced []string, err error) {
	if err := checkSlug(repo.Slug); err != nil {
		return nil, err
	}
	if repo.Root == "" || !utf8.ValidString(repo.Root+repo.Wiki) {
		return nil, fmt.Errorf("%q is no name of a checkout, or %q of a wiki: %w", repo.Root, repo.Wiki, providers.ErrInvalid)
	}
	at := sight([]Repo{repo})[0]
	c := checkout{root: at.real, repository: at.repository}
	if c.own, err = o.list(ctx); err != nil {
		return nil, err
	}
	var damaged error
	err = change(ctx, b, func(r *registry) bool {
		displaced, damaged = nil, nil
		i := r.find(repo.Slug)
		if i < 0 {
			i = len(r.entries)
			r.entries = append(r.entries, object{{keySlug, text(repo.Slug)}})
		} else if displaced, damaged = r.entries[i].displace(c); damaged != nil {
			return false
		}
		r.entries[i].set(keyRoot, text(repo.Root))
		if repo.Wiki != "" {
			r.entries[i].set(keyWiki, text(repo.Wiki))
		}
		return true
	})
	if err = errors.Join(err, damaged); err == nil && len(displaced) > 0 {
		err = o.forget(ctx, repo.Slug, displaced...)
	}
	if err == nil && at.here {
		err = o.remember(ctx, c, repo.Slug, repo.Root)
	}
	return displaced, err
}

// displace takes the roots out of an entry that a checkout of this machine replaces, and returns
// those of other checkouts.
func (o *object) displace(c checkout) (displaced []string, err error) {
	all, err := reposOf(*o)
	if err != nil {
		return nil, err
	}
	var kept []string
	for i, s := range c.sight(all) {
		switch {
		case all[i].refuse(c, s) != nil:
			displaced = append(displaced, all[i].Root)
		case i > 0 && !all[i].isAt(c.root): // the first is set anew
			kept = append(kept, all[i].Root)
		}
	}
	o.setRoots(kept)
	return displaced, nil
}

// Unregister is Own.Unregister without an Own.
func Unregister(ctx context.Context, b seam.Backend, slug string) (removed bool, err error) {
	return Own{}.Unregister(ctx, b, slug)
}

// Unregister removes a repository, and reports whether it was there.
func (o Own) Unregister(ctx context.Context, b seam.Backend, slug string) (removed bool, err error) {
	if err := checkSlug(slug); err != nil {
		return false, err
	}
	err = change(ctx, b, func(r *registry) bool {
		i := r.find(slug)
		if removed = i >= 0; removed {
			r.entries = slices.Delete(r.entries, i, i+1)
		}
		return removed
	})
	if err == nil {
		err = o.forget(ctx, slug)
	}
	return removed && err == nil, err
}

// change writes the registry as f changes it, if f reports a change.
func change(ctx context.Context, b seam.Backend, f func(*registry) bool) error {
	l, err := b.Resolve(place...)
	if err != nil {
		return err
	}
	return seam.Update(ctx, b, l, func(content string, was bool) (string, bool, error) {
		r := &registry{fields: object{{keyVersion, json.RawMessage(fmt.Sprint(version))}}}
		if was {
			var err error
			if r, err = parseRegistry(l, content); err != nil {
				return "", false, err
			}
		}
		if !f(r) {
			return "", false, nil
		}
		list, err := json.Marshal(append([]object{}, r.entries...)) // none is [], and no null
		if err != nil {
			return "", false, err
		}
		r.fields.set(keyRepos, list)
		changed, err := indented(r.fields)
		return changed, true, err
	})
}

// registry is the file.
type registry struct {
	fields  object
	entries []object // of fields' list
}

// parseRegistry reads a file whose version is known.
func parseRegistry(l seam.Locator, content string) (*registry, error) {
	r := &registry{}
	if err := json.Unmarshal([]byte(content), &r.fields); err != nil {
		return nil, corrupt(l, err)
	}
	if v := r.fields.get(keyVersion); v == nil {
		r.fields.set(keyVersion, json.RawMessage(fmt.Sprint(version)))
	} else if string(v) != fmt.Sprint(version) {
		return nil, fmt.Errorf("%s has version %s, and only %d is known: %w", l, v, version, providers.ErrUnsupported)
	}
	if list := r.fields.get(keyRepos); list != nil {
		if err := json.Unmarshal(list, &r.entries); err != nil {
			return nil, corrupt(l, err)
		}
	}
	return r, nil
}

func corrupt(l seam.Locator, err error) error {
	return fmt.Errorf("%s cannot be read: %w: %w", l, providers.ErrCorrupt, err)
}

// reposOf are the checkouts of an entry, agentm's first.
func reposOf(o object) ([]Repo, error) {
	var r Repo
	var errs [4]error
	r.Slug, errs[0] = o.text(keySlug)
	r.Root, errs[1] = o.text(keyRoot)
	r.Wiki, errs[2] = o.text(keyWiki)
	all := []Repo{r}
	var roots []string
	roots, errs[3] = o.roots()
	for _, root := range roots {
		all = append(all, Repo{Slug: r.Slug, Root: root})
	}
	return all, errors.Join(errs[:]...)
}

// roots are an entry's roots in the field that agentm does not know.
func (o object) roots() (roots []string, err error) {
	if value := o.get(keyRoots); value != nil {
		err = json.Unmarshal(value, &roots)
	}
	return roots, err
}

// addRoot adds one of those roots, to an entry that can be read.
func (o *object) addRoot(root string) {
	roots, _ := o.roots()
	o.setRoots(append(roots, root))
}

func (o *object) setRoots(roots []string) {
	if len(roots) == 0 {
		*o = slices.DeleteFunc(*o, func(f field) bool { return f.key == keyRoots })
		return
	}
	var list []json.RawMessage
	for _, one := range roots {
		list = append(list, text(one))
	}
	value, _ := json.Marshal(list) // of strings that were JSON already
	o.set(keyRoots, value)
}

// find is the index of a slug, or -1.
func (r *registry) find(slug string) int {
	return slices.IndexFunc(r.entries, func(o object) bool {
		s, err := o.text(keySlug)
		return err == nil && s == slug
	})
}
