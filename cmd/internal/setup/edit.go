package setup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/host/configedit"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/linediff"
)

// An edit is a change of a host configuration.
type edit struct {
	path   string
	was    *hostfile.File        // nil: there is none
	text   []byte                // the new text
	parsed *host.Config          // of text
	new    []configedit.Addition // those that it lacks
}

// editOf adds to the configuration in use. A contradiction to it is refused.
func editOf(cfg *host.Config, list []configedit.Addition) (edit, error) {
	e := edit{path: cfg.Path, parsed: cfg}
	if e.path == "" {
		e.path = filepath.Join(cfg.Dir, "config.yaml")
	}
	if cfg.Path != "" {
		var err error
		if e.was, err = hostfile.Read(cfg.Path, hostfile.Options{}); err != nil {
			return e, exit.New(exit.Failed, "the host configuration: %w", err).Hint("see `wsmount doctor`")
		}
		e.text = e.was.Data
	}
	for _, a := range list {
		text, err := configedit.Add(e.text, a)
		var other *configedit.Contradiction
		switch {
		case errors.As(err, &other):
			return e, exit.New(exit.Denied, "%s: %w", e.path, err).Hint("change it there, or give what it says")
		case err != nil:
			return e, exit.New(exit.Failed, "%s: %s cannot be added: %w", e.path, a.Key(), err).Hint("change it by hand")
		case string(text) != string(e.text):
			e.text, e.new = text, append(e.new, a)
		}
	}
	if len(e.new) == 0 {
		return e, nil
	}
	home, _ := os.UserHomeDir()
	parsed, found := host.ParseConfig(e.text, host.ParseOptions{Name: e.path, Home: home, Lookup: os.LookupEnv})
	if err := found.Err(); err != nil {
		return e, exit.New(exit.Manifest, "the host configuration would not be valid: %w", err).Hint("give other values")
	}
	parsed.Places = cfg.Places
	e.parsed = parsed
	return e, nil
}

// lines are the additions alone, or, if there is a configuration, the difference to it: an
// existing list or mapping cannot stand there a second time.
func (e edit) lines() (string, error) {
	if e.was != nil && len(e.new) > 0 {
		return strings.Join(e.diff(), "\n") + "\n", nil
	}
	var text []byte
	for _, a := range e.new {
		var err error
		if text, err = configedit.Add(text, a); err != nil {
			return "", exit.New(exit.Failed, "%w", err).Hint("write it by hand: `wsmount help config` has each key")
		}
	}
	return string(text), nil
}

func (e edit) diff() []string {
	var was string
	if e.was != nil {
		was = string(e.was.Data)
	}
	return linediff.Of(was, string(e.text))
}

// write replaces the configuration, if it is still the one that was read. back restores
// that one, unless the file has changed since.
func (e edit) write() (back func(), err error) {
	if e.was != nil {
		err = e.was.Replace(e.text, hostfile.Options{})
	} else if err = e.make(); err == nil {
		err = hostfile.WriteAtomic(e.path, e.text, hostfile.Options{})
	}
	if err != nil {
		return nil, exit.New(exit.Failed, "the host configuration cannot be written: %w", err).Hint("run it again, or without --grant, and write its lines there yourself")
	}
	return func() {
		is, err := hostfile.Read(e.path, hostfile.Options{})
		switch {
		case err != nil || string(is.Data) != string(e.text):
		case e.was == nil:
			_ = os.Remove(e.path)
		default:
			_ = is.Replace(e.was.Data, hostfile.Options{})
		}
	}, nil
}

// make makes the directory of a configuration that does not exist, and checks
// that it still does not.
func (e edit) make() error {
	if err := os.MkdirAll(filepath.Dir(e.path), 0o700); err != nil {
		return err
	}
	if _, err := os.Lstat(e.path); err == nil {
		return hostfile.ErrChanged
	}
	return nil
}
