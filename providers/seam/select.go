package seam

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// Protocols that selection itself knows.
const (
	DeviceLocal = "device-local" // where no setting names another
	Vault       = "vault"        // a directory that the configuration names
)

// Select opens the backend that the settings ask for: the named one, else that of storage.backend
// in the configuration, else the vault of $MEMORY_VAULT_PATH, else device-local. It fails with a
// SelectionError when that backend cannot be had, and with a CapabilityMismatchError when it does
// not promise all of required. No other backend ever takes its place. An error of opening is that
// of the backend.
func (r *Registry) Select(ctx context.Context, s Settings, required Capabilities) (Backend, error) {
	c, refusal := r.choose(ctx, s, required)
	if refusal != nil {
		return nil, refusal
	}
	b, err := c.class.Open(ctx, c.settings)
	if err != nil {
		return nil, fmt.Errorf("open %q (%s): %w", c.protocol, c.origin, err)
	}
	if refusal := c.lacks(b.Capabilities(), required); refusal != nil {
		return nil, errors.Join(refusal, b.Close())
	}
	return b, nil
}

// Choose is the choice of Select: its protocol, and the settings that its class would get. It
// fails as Select does, and opens nothing.
func (r *Registry) Choose(ctx context.Context, s Settings) (protocol string, settled Settings, err error) {
	c, err := r.choose(ctx, s, Capabilities{})
	return c.protocol, c.settings, err
}

// Preview is the expected outcome of Select.
type Preview struct {
	Protocol string // "" when it is not known
	Grade    providers.Grade
	Text     string          // of a refusal, byte for byte the text of Select's error
	Do       string          // the remedy, where Grade is not Good
	Refusal  *SelectionError // nil: none
}

// Preview tells the expected outcome of Select without side effects: no backend is opened.
func (r *Registry) Preview(ctx context.Context, s Settings, required Capabilities) Preview {
	c, refusal := r.choose(ctx, s, required)
	if refusal != nil {
		p := Preview{Protocol: c.protocol, Grade: providers.Bad, Text: refusal.Error()}
		errors.As(refusal, &p.Refusal) // it is one
		p.Do = p.Refusal.Do
		return p
	}
	text := fmt.Sprintf("memory lies in %q (%s)", c.protocol, c.origin)
	if c.found.Says != "" {
		text += ": " + c.found.Says
	}
	return Preview{Protocol: c.protocol, Grade: c.found.Grade, Text: text, Do: c.found.Do}
}

// choice is the result of settings.
type choice struct {
	protocol string
	origin   string // the setting that asks for it
	class    *Class
	settings Settings
	from     string // the setting with the vault's directory
	found    providers.Finding
}

// choose is Select without the opening. After an error the choice is as far as it came; the error
// is a SelectionError or CapabilityMismatchError.
func (r *Registry) choose(ctx context.Context, s Settings, required Capabilities) (choice, error) {
	c := choice{settings: s}
	explicit, refusal := "", (*SelectionError)(nil)
	if s.Backend == "" {
		explicit, refusal = s.Config.get("storage.backend")
	}
	switch {
	case s.Backend != "":
		c.protocol, c.origin = s.Backend, "by name"
	case refusal != nil:
		return c, refusal
	case explicit != "":
		c.protocol, c.origin = explicit, "storage.backend in "+s.Config.Name
	case s.Vault != "":
		c.protocol, c.origin = Vault, "$MEMORY_VAULT_PATH"
	default:
		c.protocol, c.origin = DeviceLocal, "nothing else is configured"
	}
	if c.class = r.Get(c.protocol); c.class == nil {
		return c, c.unregistered(r.Protocols())
	}
	if c.protocol == Vault {
		if refusal := c.locate(); refusal != nil {
			return c, refusal
		}
	}
	if refusal := c.answers(); refusal != nil {
		return c, refusal
	}
	if refusal := c.there(); refusal != nil {
		return c, refusal
	}
	if refusal := c.apart(); refusal != nil {
		return c, refusal
	}
	if refusal := c.lacks(c.class.Promises, required); refusal != nil {
		return c, refusal
	}
	if c.class.Look != nil {
		if c.found = c.class.Look(ctx, c.settings); c.found.Grade == providers.Bad {
			return c, c.refuse(Unusable, providers.ErrUnavailable, c.found.Do, "which cannot be used: %s", c.found.Says)
		}
	}
	return c, nil
}

func (c *choice) refuse(reason Reason, kind error, do, format string, args ...any) *SelectionError {
	what := fmt.Sprintf("memory is to lie in %s (%s), ", Told(c.protocol), c.origin) + fmt.Sprintf(format, args...)
	return &SelectionError{Reason: reason, Protocol: c.protocol, What: what, Do: do, Err: kind}
}

func (c *choice) unregistered(there []string) *SelectionError {
	list := "nothing is"
	if len(there) > 0 {
		list = strings.Join(there, ", ") + " are"
	}
	return c.refuse(NotRegistered, providers.ErrUnknown, "set storage.backend to one that is there, or use a wsmount that has it",
		"which is not built into this wsmount (%s)", list)
}

// locate finds the vault: by $MEMORY_VAULT_PATH in this session, else by vault_path of the
// configuration.
func (c *choice) locate() *SelectionError {
	vault, from := c.settings.Vault, "$MEMORY_VAULT_PATH"
	if vault == "" {
		var refusal *SelectionError
		if vault, refusal = c.settings.Config.get("vault_path"); refusal != nil {
			refusal.Protocol = c.protocol
			return refusal
		}
		from = "vault_path"
	}
	if vault == "" {
		return c.refuse(NoVaultPath, providers.ErrInvalid, "set vault_path in the configuration, or $MEMORY_VAULT_PATH, or another storage.backend",
			"and no vault_path says where that is")
	}
	if rest, ok := strings.CutPrefix(vault, "~/"); ok && c.settings.Home != "" {
		vault = filepath.Join(c.settings.Home, rest)
	}
	if !filepath.IsAbs(vault) {
		return c.refuse(VaultAbsent, fmt.Errorf("%w: %w", providers.ErrUnavailable, fs.ErrInvalid), "set "+from+" to where it is",
			"and %s is no absolute path", from)
	}
	c.settings.Vault, c.from = vault, from
	return nil
}

// answers refuses a place whose server does not answer: the directory, or a place that it is to
// be kept apart from. It comes before all system calls on them.
func (c *choice) answers() *SelectionError {
	if c.class.Dir == nil {
		return nil
	}
	for _, place := range append([]string{c.class.Dir(c.settings)}, c.settings.Config.Believed...) {
		if err := c.settings.answers(place); err != nil {
			return c.refuse(Silent, err, letItAnswer, "and %s does not answer: %v", place, err)
		}
	}
	return nil
}

// there refuses a missing vault: one that is not mounted yet would be made anew beside the right
// one.
func (c *choice) there() *SelectionError {
	if c.protocol != Vault {
		return nil
	}
	vault, from := c.settings.Vault, c.from
	info, err := os.Stat(vault)
	if err == nil && !info.IsDir() {
		err = providers.ErrNotDir
	}
	if err != nil {
		return c.refuse(VaultAbsent, fmt.Errorf("%w: %w", providers.ErrUnavailable, err), "mount or sync it first, or set "+from+" to where it is",
			"and the vault of %s is not there: %q is no directory (%v)", from, vault, err)
	}
	return nil
}

// apart refuses a directory that leads to a space of the operator's own, or to files that rule
// the machine.
func (c *choice) apart() *SelectionError {
	if c.class.Dir == nil {
		return nil
	}
	var e *ApartError
	dir := c.class.Dir(c.settings)
	if errors.As(c.settings.CheckApart(dir), &e) { // every error of it is one
		return c.refuse(PersonalSpace, e, e.Do, "and %s", e.What)
	}
	if errors.As(c.settings.checkHost(dir), &e) {
		return c.refuse(HostPlace, e, e.Do, "and %s", e.What)
	}
	return nil
}

// lacks refuses a backend that does not promise all of required.
func (c *choice) lacks(promised, required Capabilities) error {
	missing := promised.Missing(required)
	if len(missing) == 0 {
		return nil
	}
	promises := promised.String()
	if promises == "" {
		promises = "none"
	}
	return &CapabilityMismatchError{c.refuse(CapabilityMismatch, providers.ErrUnsupported, "require less, or set storage.backend to one that promises it",
		"which does not promise %s (it promises %s)", strings.Join(missing, ", "), promises), missing}
}

// Reason tells refusals apart.
type Reason string

// The reasons of a SelectionError.
const (
	ConfigCorrupt      Reason = "config-corrupt"      // the configuration cannot be read
	ConfigNoString     Reason = "config-no-string"    // a value is no string, or empty
	NotRegistered      Reason = "not-registered"      // no class has the name
	NoVaultPath        Reason = "no-vault-path"       // no setting has the vault's directory
	VaultAbsent        Reason = "vault-absent"        // the vault is missing
	Silent             Reason = "silent"              // a server of it or the configuration is silent
	CapabilityMismatch Reason = "capability-mismatch" // a CapabilityMismatchError
	PersonalSpace      Reason = "personal-space"      // the operator's own space lies in the vault, or that is not known
	HostPlace          Reason = "host-place"          // files that wsmount trusts lie in or around it
	Unusable           Reason = "unusable"            // the class says that Open would fail
)

// SelectionError refuses to open any backend, because the one that is asked for cannot be had.
type SelectionError struct {
	Reason   Reason
	Protocol string // the one asked for; "" when that is not known
	What     string // the missing thing, and the present ones
	Do       string
	Err      error // a kind of package providers, and perhaps a cause
}

// Error says that nothing else takes the place.
func (e *SelectionError) Error() string { return e.What + "; nothing else is used in its place" }

// Unwrap is the kind.
func (e *SelectionError) Unwrap() error { return e.Err }

// CapabilityMismatchError is the SelectionError of a backend that does not promise all of
// required.
type CapabilityMismatchError struct {
	*SelectionError
	Missing []string // all that it does not promise
}

// Unwrap is the SelectionError.
func (e *CapabilityMismatchError) Unwrap() error { return e.SelectionError }
