package store

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/project"
)

const (
	rootFlag = "root"
	wikiFlag = "wiki"
)

const ofState = "\n\nA PROJECT is a directory in a checkout, written with a slash, as ./atlas is, or the slug that one is registered with. " +
	"Its state lies in its .harness, unless the memory that agentm's configuration chooses is replicated, as a vault is: then there, " +
	"below projects/SLUG/_harness. A .harness/.project-mode that says local keeps it in the checkout.\n\nThe SLUG is vault_project in the " +
	"checkout's .harness/project.json, else the last name of github.repo there, else of its git remote origin, else what it is registered with; a checkout " +
	"with none of these keeps its state in itself. One that is registered for another checkout of this machine is refused; where two of them are registered, as after a checkout was moved " +
	"and cloned anew at its old place, both are, until `wsmount store repos register SLUG --root DIR` says which it is. So are all where the one that this machine registered is not there any more, as one that was moved."

// projectVerbs are the verbs on the state of projects and on the registry of repositories.
func projectVerbs() []Verb {
	return []Verb{
		{Name: "state dir", Args: "PROJECT", Usage: "say where the state of a project lies", Least: 1, Most: 1, Flags: []Flag{backend, requires}, run: stateDir,
			Description: "Prints the directory in the checkout, or the locator in memory." + ofState},
		{Name: "state read", Args: "PROJECT FILE", Usage: "print a state file of a project", Least: 2, Most: 2, Flags: []Flag{backend, requires}, run: inState(read, false),
			Description: "Prints PLAN.md, or whatever FILE is. The exit code is 4 if there is none." + ofState},
		{Name: "state write", Args: "PROJECT FILE", Usage: "write standard input to a state file of a project", Least: 2, Most: 2, Changes: true,
			Flags: []Flag{ifMatch, backend, requires}, run: inState(write, true), Description: "Replaces the file in one step, as `store write` does, and registers the slug if nothing is." + ofState},
		{Name: "repos list", Usage: "list the repositories that agents know", Flags: []Flag{backend, requires}, run: inRepos(listRepos),
			Description: "Prints the slug and the checkout of each, in the order in which they were registered. They are in _meta/repos.json of the memory."},
		{Name: "repos register", Args: "SLUG", Usage: "register a repository, or change it", Least: 1, Most: 1, Changes: true,
			Flags: []Flag{{rootFlag, "`DIR` of its checkout"}, {wikiFlag, "`DIR` of its wiki (default: as it was)"}, backend, requires}, run: inRepos(register),
			Description: "The checkout is the one of its slug on this machine from then on: others of this machine that were registered with it are named, and refused. " +
				"Several may register at once: none is lost.\n\n  wsmount store repos register atlas --root ~/src/atlas"},
		{Name: "repos unregister", Args: "SLUG", Usage: "forget a repository", Least: 1, Most: 1, Changes: true, Flags: []Flag{backend, requires}, run: inRepos(unregister),
			Description: "Prints removed, or noop if it was not there, which is no error. The checkout stays."},
	}
}

// state finds the state of the project that the first argument names. The caller closes it.
func (c Call) state(ctx context.Context) (project.State, error) {
	name := c.Args[0]
	if strings.Contains(name, "/") || name == "." || name == ".." {
		var err error
		if name, err = filepath.Abs(name); err == nil {
			err = c.Host.Answers(ctx, name) // before any call on a mount that may hang
		}
		if err != nil {
			return project.State{}, err
		}
	}
	return project.Machine{Config: c.Host.Settings.Config, Memory: c.memory, Own: c.Host.own(),
		Checkout: func(dir string) (seam.Backend, error) { return c.Host.openCheckout(ctx, dir) }}.State(ctx, name)
}

// own is this machine's own record of checkouts.
func (h Host) own() project.Own {
	return project.Own{Open: func(make bool) (seam.Backend, error) {
		root, err := h.StateRoot()
		if err != nil {
			return nil, err
		}
		dir, err := state.Checkouts(root, make)
		if err != nil {
			return nil, err
		}
		return all.Directory(dir)
	}}
}

// inState is a verb on a file of a project's state. changes: it changes the file.
func inState(do onFiles, changes bool) func(context.Context, Call) (Answer, exit.Code, error) {
	return func(ctx context.Context, c Call) (Answer, exit.Code, error) {
		s, err := c.state(ctx)
		if err != nil {
			return nil, 0, apart(err)
		}
		return c.closing(s, func() (Answer, exit.Code, error) {
			l, err := s.Dir.Child(c.Args[1])
			if err == nil && changes {
				err = claim(ctx, s)
			}
			if err != nil {
				return nil, 0, err
			}
			return do(ctx, s.Backend, l, c)
		})
	}
}

func claim(ctx context.Context, s project.State) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	return s.Claim(ctx)
}

type stateAnswer struct {
	place
	Where string `json:"where"`          // memory or checkout
	Path  string `json:"path,omitempty"` // in a checkout
}

// Print prints the path, or the locator if there is none.
func (s stateAnswer) Print(w io.Writer) error {
	name := s.Path
	if name == "" {
		name = s.Locator
	}
	return listing{Children: []string{name}}.Print(w)
}

func stateDir(ctx context.Context, c Call) (Answer, exit.Code, error) {
	s, err := c.state(ctx)
	if err != nil {
		return nil, 0, err
	}
	out := stateAnswer{place: at(s.Dir), Where: "memory"}
	if !s.Synced {
		out.Where, out.Path = "checkout", filepath.Join(s.Root, filepath.FromSlash(s.Dir.Key()))
	}
	return out, exit.Done, s.Close()
}

// inRepos is a verb on the registry of repositories.
func inRepos(do func(ctx context.Context, b seam.Backend, c Call) (Answer, exit.Code, error)) func(context.Context, Call) (Answer, exit.Code, error) {
	return func(ctx context.Context, c Call) (Answer, exit.Code, error) {
		b, err := c.memory(ctx)
		if err != nil {
			return nil, 0, err
		}
		return c.closing(b, func() (Answer, exit.Code, error) { return do(ctx, b, c) })
	}
}

type repoJSON struct {
	Slug string `json:"slug"`
	Root string `json:"root"`
	Wiki string `json:"wiki,omitempty"`
}

type repoList struct {
	Schema string     `json:"schema"`
	Repos  []repoJSON `json:"repos"`
}

// Print prints a line for each: slug, tab, checkout.
func (r repoList) Print(w io.Writer) error {
	var lines strings.Builder
	for _, one := range r.Repos {
		fmt.Fprintf(&lines, "%s\t%s\n", onLine(one.Slug), onLine(one.Root))
	}
	_, err := io.WriteString(w, lines.String())
	return err
}

func listRepos(ctx context.Context, b seam.Backend, _ Call) (Answer, exit.Code, error) {
	list, err := project.Repos(ctx, b)
	out := repoList{Schema, []repoJSON{}}
	for _, r := range list {
		out.Repos = append(out.Repos, repoJSON(r))
	}
	return out, exit.Done, err
}

// outcome is a word for the result.
type outcome struct {
	Schema    string   `json:"schema"`
	Slug      string   `json:"slug"`
	Outcome   string   `json:"outcome"`
	Displaced []string `json:"displaced,omitempty"` // checkouts that had the slug
}

// Notes tells which checkouts have lost the slug.
func (o outcome) Notes() (notes []string) {
	for _, root := range o.Displaced {
		notes = append(notes, fmt.Sprintf("%s had the memory of %q, and is refused it from now on: give it a slug of its own, as vault_project in its .harness/project.json", root, o.Slug))
	}
	return notes
}

// Print prints the word.
func (o outcome) Print(w io.Writer) error { return listing{Children: []string{o.Outcome}}.Print(w) }

func register(ctx context.Context, b seam.Backend, c Call) (Answer, exit.Code, error) {
	r := project.Repo{Slug: c.Args[0]}
	if c.Flag(rootFlag) == "" {
		return nil, 0, exit.New(exit.Usage, "--%s is needed: where the checkout is", rootFlag).Hint("wsmount store repos register %s --root DIR", r.Slug)
	}
	for flag, to := range map[string]*string{rootFlag: &r.Root, wikiFlag: &r.Wiki} {
		if given := c.Flag(flag); given != "" {
			var err error
			if *to, err = filepath.Abs(given); err != nil {
				return nil, 0, err
			}
		}
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	displaced, err := c.Host.own().Settle(ctx, b, r)
	return outcome{Schema, r.Slug, "registered", displaced}, exit.Done, err
}

func unregister(ctx context.Context, b seam.Backend, c Call) (Answer, exit.Code, error) {
	ctx, stop := untilSignal(ctx)
	defer stop()
	removed, err := c.Host.own().Unregister(ctx, b, c.Args[0])
	out := outcome{Schema: Schema, Slug: c.Args[0], Outcome: "noop"}
	if removed {
		out.Outcome = "removed"
	}
	return out, exit.Done, err
}
