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
	DeviceLocal = "device-local" // where nothing says otherwise
	Vault       = "vault"        // a directory that the configuration names
)

// Select opens the backend that the settings ask for: the one that is named, else that of
// storage.backend in the configuration, else the vault of $MEMORY_VAULT_PATH, else device-local. It fails with a
// SelectionError when it is not to be had, and with a CapabilityMismatchError when it does
// not promise all of required. No other backend ever takes its place. An error of opening
// is that of the backend.
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

// Choose is what Select would open: its protocol, and the settings that its class would
// get. It fails as Select does, and opens nothing.
func (r *Registry) Choose(ctx context.Context, s Settings) (protocol string, settled Settings, err error) {
	c, err := r.choose(ctx, s, Capabilities{})
	return c.protocol, c.settings, err
}

// Preview is what Select would do.
type Preview struct {
	Protocol string // "" when it is not known
	Grade    providers.Grade
	Text     string          // of a refusal, byte for byte what the error of Select says
	Do       string          // what to do where Grade is not Good
	Refusal  *SelectionError // nil: none
}

// Preview says what Select would do, and does nothing: no backend is opened.
func (r *Registry) Preview(ctx context.Context, s Settings, required Capabilities) Preview {
	c, refusal := r.choose(ctx, s, required)
	if refusal != nil {
		p := Preview{Protocol: c.protocol, Grade: providers.Bad, Text: refusal.Error()}
		errors.As(refusal, &p.Refusal) // which it is
		p.Do = p.Refusal.Do
		return p
	}
	text := fmt.Sprintf("memory lies in %q (%s)", c.protocol, c.origin)
	if c.found.Says != "" {
		text += ": " + c.found.Says
	}
	return Preview{Protocol: c.protocol, Grade: c.found.Grade, Text: text, Do: c.found.Do}
}

// choice is what settings come to.
type choice struct {
	protocol string
	origin   string // who asks for it
	class    *Class
	settings Settings
	from     string // what says where a vault is
	found    providers.Finding
}

// choose is the whole way of Select up to opening. The choice is as far as it came, and the
// error a SelectionError or CapabilityMismatchError.
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

// locate finds the vault: where $MEMORY_VAULT_PATH says in this session, else where
// vault_path of the configuration does.
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

// answers refuses a place that nothing would ever be heard of: the directory, or what it is to be
// kept apart from. It comes before all that asks there.
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

// there refuses a vault that is not there: one that is not mounted yet would be made anew beside
// the right one.
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

// apart refuses a directory that leads to a space of the operator's own, or to what rules the
// machine.
func (c *choice) apart() *SelectionError {
	if c.class.Dir == nil {
		return nil
	}
	var e *ApartError
	dir := c.class.Dir(c.settings)
	if errors.As(c.settings.CheckApart(dir), &e) { // which says it in no other way
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
	NoVaultPath        Reason = "no-vault-path"       // nothing says where the vault is
	VaultAbsent        Reason = "vault-absent"        // the vault is not where it is said to be
	Silent             Reason = "silent"              // what serves it, or the configuration, does not answer
	CapabilityMismatch Reason = "capability-mismatch" // a CapabilityMismatchError
	PersonalSpace      Reason = "personal-space"      // the operator's own space lies in the vault, or that is not known
	HostPlace          Reason = "host-place"          // what rules the machine lies in it, or around it
	Unusable           Reason = "unusable"            // the class says that Open would fail
)

// SelectionError refuses to open any backend, because the one that is asked for is not to
// be had.
type SelectionError struct {
	Reason   Reason
	Protocol string // what was asked for; "" when that is not known
	What     string // what is missing, and what there is
	Do       string
	Err      error // a kind of package providers, and perhaps a cause
}

// Error says that nothing else takes the place.
func (e *SelectionError) Error() string { return e.What + "; nothing else is used in its place" }

// Unwrap is the kind.
func (e *SelectionError) Unwrap() error { return e.Err }

// CapabilityMismatchError is the SelectionError of a backend that does not promise what is
// required.
type CapabilityMismatchError struct {
	*SelectionError
	Missing []string // all that it does not promise
}

// Unwrap is the SelectionError.
func (e *CapabilityMismatchError) Unwrap() error { return e.SelectionError }
