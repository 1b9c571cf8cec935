package seam

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// Settings tell where memory lies on this machine.
type Settings struct {
	Home    string // the user's own directory
	Vault   string // $MEMORY_VAULT_PATH; for a Class, the vault's directory; "": unset
	Backend string // the backend that is asked for by name, before all else; "": none
	// ReadOnly: nothing will be changed, so the needs of changes may be missing, such as a lock
	// that this user can make.
	ReadOnly bool
	// Answers is an error if a place lies in a mount whose server does not answer: a system call
	// in it never returns. It touches nothing in the mount. nil: nothing is mounted.
	Answers func(place string) error
	// Personal are the operator's own spaces: see CheckApart. nil: there are none.
	Personal func() ([]Space, error)
	// Host are wsmount's own places that memory is kept apart from: the files that it believes,
	// and its directory of state, whether they exist or not. nil: there are none.
	Host func() ([]string, error)
	// Behind are the directories of this machine that a directory and its content show, because
	// something is mounted on them. nil: no mount.
	Behind func(dir string) ([]string, error)
	// Mounted opens a directory by the server of the mount that it lies in, which has the locks
	// and conditions of the directory behind the mount; nil: it lies in none, or in one whose
	// server cannot be asked, which foreign says. plain: through no symbolic link. nil: no mount.
	Mounted func(ctx context.Context, dir string, plain bool) (mount Conditional, foreign, err error)
	Config  Config
}

// Config is agentm's configuration of this machine.
type Config struct {
	Name string // its name in messages
	Text []byte // JSON
	// Err is the reason why there is no Text. fs.ErrNotExist is a machine without a
	// configuration; with any other error, its content is not known.
	Err error
	// Believed are the files it is taken from, by any session of the machine, present or not.
	Believed []string
}

// configName is the configuration's name in the directory that agentm is installed in, and
// prefixVariable the variable with that directory.
const (
	configName     = ".agentm-config.json"
	prefixVariable = "AGENTM_INSTALL_PREFIX"
)

// ReadSettings reads the environment, and the configuration: the one in $AGENTM_INSTALL_PREFIX,
// or in ~/.claude without that. Select refuses a configuration that cannot be read. answers is
// Settings.Answers.
func ReadSettings(getenv func(key string) string, answers func(place string) error) Settings {
	s := Settings{Home: getenv("HOME"), Vault: getenv("MEMORY_VAULT_PATH"), Answers: answers}
	prefix := getenv(prefixVariable)
	if prefix != "" {
		s.Config.Believed = append(s.Config.Believed, filepath.Join(prefix, configName))
	}
	if s.Home != "" {
		s.Config.Believed = append(s.Config.Believed, filepath.Join(s.Home, ".claude", configName))
	}
	if len(s.Config.Believed) == 0 {
		s.Config.Err = fs.ErrNotExist
		return s
	}
	s.Config.Name = s.Config.Believed[0]
	if s.Config.Err = s.answers(s.Config.Name); s.Config.Err == nil {
		s.Config.Text, s.Config.Err = readConfig(s.Config.Name, prefix != "")
	}
	return s
}

// SilentError says that the server of a place does not answer. It is providers.ErrUnavailable.
type SilentError struct{ Err error }

// Error is the cause.
func (e *SilentError) Error() string { return e.Err.Error() }

// Unwrap is providers.ErrUnavailable, and the cause.
func (e *SilentError) Unwrap() []error { return []error{providers.ErrUnavailable, e.Err} }

const letItAnswer = "let what serves the mount answer, or unmount it: `wsmount status` says how it is"

// answers is a SilentError where Answers is one.
func (s Settings) answers(place string) error {
	if s.Answers == nil {
		return nil
	}
	if err := s.Answers(place); err != nil {
		return &SilentError{err}
	}
	return nil
}

// readConfig reads a configuration. fs.ErrNotExist says that the machine has none: where a link
// or a variable names one that is missing, it is another error. installed: its directory must
// exist.
func readConfig(name string, installed bool) ([]byte, error) {
	text, err := os.ReadFile(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	dir := filepath.Dir(name)
	for _, link := range []string{dir, name} {
		_, absent := os.Lstat(link)
		if _, away := os.Stat(link); absent == nil && away != nil {
			return nil, fmt.Errorf("%s is a symbolic link to what is not there", link)
		}
	}
	if _, away := os.Stat(dir); installed && away != nil {
		return nil, fmt.Errorf("the directory of $%s is not there", prefixVariable)
	}
	return nil, err
}

// StateMode is the configuration's place for the state of projects; "" if it has none. The error
// is a SelectionError.
func (c Config) StateMode() (string, error) {
	mode, refusal := c.get("state_mode")
	if refusal != nil {
		return "", refusal // a nil *SelectionError would be no nil
	}
	return mode, nil
}

// get is the string at a key, "" if there is none. The key storage.backend is also backend
// in an object storage.
func (c Config) get(key string) (string, *SelectionError) {
	if errors.Is(c.Err, fs.ErrNotExist) {
		return "", nil
	}
	if errors.As(c.Err, new(*SilentError)) {
		return "", &SelectionError{Reason: Silent, What: fmt.Sprintf("where memory lies is not known, since %s cannot be read: %v", c.Name, c.Err), Do: letItAnswer, Err: c.Err}
	}
	if c.Err != nil {
		return "", c.corrupt("cannot be read: %w", c.Err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(c.Text, &fields); err != nil {
		return "", c.corrupt("is not a JSON object: %w", err)
	}
	if fields == nil {
		return "", c.corrupt("is not a JSON object: %w", providers.ErrInvalid)
	}
	raw, set := fields[key]
	if outer, inner, dotted := strings.Cut(key, "."); dotted && fields[outer] != nil {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(fields[outer], &object); err != nil || object == nil {
			return "", c.noString("%s is %s, and no object", outer, kindOf(fields[outer]))
		}
		if nested, ok := object[inner]; ok && set {
			return "", c.noString("%s is set twice", key)
		} else if ok {
			raw, set = nested, true
		}
	}
	if !set {
		return "", nil
	}
	var value *string
	if err := json.Unmarshal(raw, &value); err != nil || value == nil || strings.TrimSpace(*value) == "" {
		return "", c.noString("%s is %s, and not the name of anything", key, kindOf(raw))
	}
	return strings.TrimSpace(*value), nil
}

func (c Config) corrupt(format string, err error) *SelectionError {
	return &SelectionError{
		Reason: ConfigCorrupt, What: fmt.Sprintf("where memory lies is not known: the configuration %s %v", c.Name, fmt.Errorf(format, err)),
		Do: "mend the file, or what leads to it, or remove it", Err: fmt.Errorf("%w: %w", providers.ErrInvalid, err),
	}
}

func (c Config) noString(format string, args ...any) *SelectionError {
	return &SelectionError{
		Reason: ConfigNoString, What: fmt.Sprintf("where memory lies is not known: in %s, ", c.Name) + fmt.Sprintf(format, args...),
		Do: "set it to a string, or take it out", Err: providers.ErrInvalid,
	}
}

// kindOf is the type of a JSON value, without the value: it may be a secret.
func kindOf(raw json.RawMessage) string {
	switch begin := bytes.TrimSpace(raw); {
	case len(begin) == 0, string(begin) == "null":
		return "null"
	case begin[0] == '"':
		return "a string"
	case begin[0] == '{':
		return "an object"
	case begin[0] == '[':
		return "a list"
	case begin[0] == 't', begin[0] == 'f':
		return "true or false"
	}
	return "a number"
}

// plainWord are values that a message may show: a name, and no URL with a password in it, nor
// anything else that was put in the wrong place.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

// Told is a value of a configuration as a message may show it.
func Told(value string) string {
	if plainWord.MatchString(value) {
		return strconv.Quote(value)
	}
	return "what is no name"
}
