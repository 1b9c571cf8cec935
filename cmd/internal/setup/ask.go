package setup

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/manifestfile"
	"github.com/wsmount/wsmount/cmd/internal/person"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/giturl"
	"github.com/wsmount/wsmount/mountspec/host/origin"
)

// An Asker puts questions to a person, a line each.
type Asker struct {
	in  *bufio.Reader
	out io.Writer
}

// NewAsker reads answers, and writes questions.
func NewAsker(in io.Reader, out io.Writer) *Asker { return &Asker{bufio.NewReader(in), out} }

// errUnanswered ends the questions: nothing is written before the last answer.
var errUnanswered = exit.New(exit.Usage, "the questions were not answered, and nothing was written").Hint("give the answers as flags: `wsmount init --help`")

// Ask asks until the answer passes check; an empty answer means usual.
func (a *Asker) Ask(question, usual string, check func(string) error) (string, error) {
	for {
		if fmt.Fprint(a.out, question); usual != "" {
			fmt.Fprintf(a.out, " [%s]", usual)
		}
		fmt.Fprint(a.out, ": ")
		line, err := a.in.ReadString('\n')
		if err != nil && (line == "" || !errors.Is(err, io.EOF)) {
			fmt.Fprintln(a.out)
			return "", errUnanswered
		}
		answer := cmp.Or(strings.TrimSpace(line), usual)
		if err := check(answer); err != nil {
			fmt.Fprintf(a.out, "  %v\n", err)
			continue
		}
		return answer, nil
	}
}

// Yes asks whether something is to be done; the usual answer is no.
func (a *Asker) Yes(question string) bool {
	answer, err := a.Ask(question+" (y/N)", "", anything)
	return err == nil && (strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes"))
}

func anything(string) error { return nil }

// Questions asks for each field that o does not set.
func (a *Asker) Questions(o *Options, gitKnows bool) (err error) {
	ask := func(to *string, question, usual string, check func(string) error) {
		if err == nil && *to == "" {
			*to, err = a.Ask(question, usual, check)
		}
	}
	ask(&o.Provider, "Where its files lie: "+strings.Join(Providers(), ", "), local, func(name string) error {
		if !slices.Contains(Providers(), name) {
			return errors.New(cmp.Or(suggest.Phrase(name, Providers()), "one of these is needed"))
		}
		return nil
	})
	p, _ := providerOf(o.Provider)
	if err == nil && p.endpoint != "" {
		ask(&o.Endpoint, p.endpoint, "", func(text string) error {
			if p.name == "azure" && text == "" {
				return errors.New("it is needed")
			}
			try := *o
			try.Endpoint = text
			return p.checkService(try)
		})
	}
	if err == nil && p.place != "" {
		ask(&o.Place, p.place, "", func(text string) error {
			if text == "" {
				return errors.New("it is needed")
			}
			try := *o
			try.Place = text
			_, err := p.storage(try, credentials{})
			return err
		})
	}
	if err == nil && p.region {
		ask(&o.Region, "Region", "us-east-1", func(text string) error {
			try := *o
			try.Region = text
			return p.checkService(try)
		})
	}
	dir := o.Dir
	ask(&dir, "Directory for its manifest, which is made", p.usualDir(o.Place), func(text string) error {
		if _, err := os.Lstat(filepath.Join(text, "WORKSPACE.md")); err == nil {
			return errors.New("it has a WORKSPACE.md already")
		}
		return nil
	})
	if err == nil {
		o.Dir, err = expand(dir)
	}
	if err == nil && o.ID == (mountspec.Address{}) {
		_, err = a.Ask("Its address", manifestfile.Address(o.Dir), func(text string) (err error) {
			o.ID, err = mountspec.ParseAddress(text)
			return err
		})
	}
	if err == nil && len(p.usual) > 0 {
		ask(&o.Credentials, "Where this host has its credentials: env:VARIABLE,..., file:PATH,\n  command:PROGRAM ARGUMENTS, or none\n ", p.usualCredentials(*o), func(text string) error {
			try := *o
			try.Credentials = text
			_, err := readCredentials(p, try, func(string) bool { return false })
			return err
		})
	}
	if err == nil && p.name == origin.GitHub && !gitKnows {
		ask(&o.Operator, "Who commits: NAME <mail>", "", func(text string) error {
			_, err := person.Parse(text)
			return err
		})
	}
	return err
}

// checkService refuses an invalid endpoint or region, independently of the place.
func (p provider) checkService(o Options) error {
	if p.name == origin.GitHub {
		if o.Endpoint == "" {
			return nil
		}
		_, err := giturl.Parse(o.Endpoint)
		return err
	}
	o.Place = "any-bucket"
	_, err := p.storage(o, credentials{})
	return err
}

// usualDir is a directory with the name of a place.
func (p provider) usualDir(place string) string {
	place, _, _ = strings.Cut(strings.TrimRight(place, "/"), "#")
	if place == "" {
		return "./workspace"
	}
	return "./" + strings.TrimSuffix(filepath.Base(place), ".git")
}

func (p provider) usualCredentials(o Options) string {
	switch {
	case strings.HasPrefix(o.Endpoint, "git://"):
		return "none"
	case p.name == origin.GitHub && (strings.HasPrefix(o.Endpoint, "ssh://") || strings.Contains(o.Endpoint, "@")):
		return "agent"
	}
	return "env:" + strings.Join(p.usual, ",")
}
