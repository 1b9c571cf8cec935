package setup

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/manifestfile"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
)

// A Guide makes a plan and tries it.
type Guide struct {
	Options
	Config   *host.Config
	Ask      *Asker // nil: a missing answer is an error
	Show     io.Writer
	Offline  bool // the store is not asked
	Grant    bool // the host configuration is written too
	Register bool // the workspace is entered in the registry

	GitKnows func() bool                                                    // an author
	OwnerIs  func(owner string) (id string, err error)                      // on this host
	Open     func(*host.Config) (req daemon.Request, end func(), err error) // a host side for it
}

// Plan asks for missing answers, makes the plan and tries it. Nothing is written.
func (g *Guide) Plan(ctx context.Context) (*Plan, []string, error) {
	asked := !g.complete() && g.Ask != nil
	if asked {
		if err := g.Ask.Questions(&g.Options, g.GitKnows()); err != nil {
			return nil, nil, err
		}
	}
	if g.Dir == "" {
		return nil, nil, exit.New(exit.Usage, "no directory is given for the manifest").Hint("wsmount init DIR --provider %s, or run it at a terminal, where it asks", g.Provider)
	}
	var err error
	if g.ID == (mountspec.Address{}) {
		if g.ID, err = mountspec.ParseAddress(manifestfile.Address(g.Dir)); err != nil {
			return nil, nil, exit.New(exit.Usage, "%w", err).Hint("give --id @owner/slug")
		}
	}
	if g.OwnerID == "" {
		if g.OwnerID, err = g.OwnerIs(g.ID.Owner); err != nil {
			return nil, nil, err
		}
	}
	plan, err := New(g.Options, g.Config)
	if err != nil {
		return nil, nil, err
	}
	var notes []string
	if !g.Offline {
		// Only here: during questions a signal ends the program as any other.
		trying, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		notes, err = plan.Try(trying, g.Open)
		if trying.Err() != nil {
			err = errInterrupted
		}
		stop()
		if err != nil {
			return nil, notes, err
		}
	}
	if asked {
		g.whatElse(plan)
	}
	return plan, notes, nil
}

// complete reports whether no necessary answer is missing.
func (g *Guide) complete() bool {
	p, known := providerOf(g.Provider)
	return known && g.Dir != "" && (p.place == "" || g.Place != "")
}

// whatElse asks which steps to do besides writing the manifests.
func (g *Guide) whatElse(plan *Plan) {
	if plan.Needs != "" && !g.Grant {
		fmt.Fprintf(g.Show, "\nThe host configuration, %s, needs these lines:\n\n%s\n", plan.config.path, indented(plan.Needs))
		g.Grant = g.Ask.Yes("Write it there")
	}
	if !g.Register {
		g.Register = g.Ask.Yes("Register " + plan.Workspace.ID.String() + " on this host")
	}
}

// A Report lists the written files, and the remaining steps.
type Report struct {
	Secrets       string   `json:"secrets,omitempty"` // the SECRETS.md
	Configuration string   `json:"configuration"`     // of the host
	Needs         string   `json:"needs,omitempty"`   // lines that it does not have yet
	Written       []string `json:"written,omitempty"` // lines that it has now, as a difference
	Next          []string `json:"next,omitempty"`    // commands
}

// Report is the report after the plan was written.
func (plan *Plan) Report(granted, registered bool) *Report {
	r := &Report{Secrets: plan.Secrets, Configuration: plan.config.path, Next: plan.nextSteps(registered)}
	if granted && plan.Needs != "" {
		r.Written = plan.config.diff()
	} else {
		r.Needs = plan.Needs
	}
	return r
}

// Print prints it for a person; nil: nothing.
func (r *Report) Print(w io.Writer) {
	if r == nil {
		return
	}
	if r.Secrets != "" {
		fmt.Fprintf(w, "secrets: %s\n", r.Secrets)
	}
	if r.Needs != "" {
		fmt.Fprintf(w, "\n%s needs these lines, which --grant writes:\n\n%s", r.Configuration, indented(r.Needs))
	}
	if r.Written != nil {
		fmt.Fprintf(w, "\n%s now has:\n\n%s", r.Configuration, indented(strings.Join(r.Written, "\n")))
	}
	fmt.Fprintf(w, "\nnext:\n%s", indented(strings.Join(r.Next, "\n")))
}
