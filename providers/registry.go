package providers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// standard are the provider names of AIP-35. Only drivers of wsmount itself may have one; "the
// registry name must not collide with the enumerated set".
var standard = []string{
	"cloud-bucket", "self-bucket", "github", "local-fs", "dev-local", "mastra-s3", "mastra-azure",
}

// Driver opens providers of one name; a registry holds drivers.
type Driver struct {
	Name string // storage.provider in a manifest
	Text string // one line for people
	// Promises are the most that a provider opened by this driver may promise. Its own
	// Capabilities tell the actual ones.
	Promises Capabilities
	// Keys are the names that Settings.Config may have.
	Keys []string
	// Open makes a provider. It changes nothing at the backend but a scratch
	// key of its own, which it removes: some promises can only be tried.
	Open func(ctx context.Context, s Settings) (Provider, error)
	// Archive reads the state that an ended provider of this driver has left in
	// Settings.StateDir, with Held the only other setting that it needs. io/fs.ErrNotExist
	// where there is no state, also of kind ErrCorrupt where it lacks parts that Open makes
	// anew from the remote; ErrUnavailable while a provider is open. nil: StateDir never has
	// the only copy of anything.
	Archive func(ctx context.Context, s Settings) (Archive, error)
}

// Settings are the input of a Driver. Secrets never travel in Config.
type Settings struct {
	Config map[string]string
	// Credentials reveals the fields of the credentials, all of one moment, and with them
	// "expiration" (RFC 3339) if they end. It is called when they are needed, before they end,
	// and when the service refused them; nil: there are none.
	Credentials func(ctx context.Context) (map[string]string, error)
	// Minted is called with each secret that the provider gets in exchange for those, such as a
	// token that ends, before it is used; nil: not called.
	Minted func(value string)
	// Ended is called with the result of work for which no call waits, under a name that the
	// provider gives it: an error is kept for a person until the same work has succeeded; nil:
	// not called. Any goroutine may call it.
	Ended func(work string, err error)
	// Receiving is called with the progress of a download whose number of pieces the service
	// tells, such as the objects of a clone; nil: not called. Any goroutine may call it, often.
	Receiving func(done, total int)
	Logger    *slog.Logger     // nil: silent
	Now       func() time.Time // nil: time.Now
	// Transport sends the requests of a network service and checks their destinations; nil: a
	// plain http.Transport, without checks.
	Transport http.RoundTripper
	// Dial connects to a service that does not speak HTTP and checks the destination, an origin
	// such as ssh://git.acme.test:22; nil: no checks.
	Dial func(ctx context.Context, origin string) (net.Conn, error)
	// StateDir is a directory of the provider's own that outlives it, for its local state; the
	// provider makes it when needed, and locks it. "": there is none, so nothing can be kept.
	StateDir string
	// Held: the caller of Archive has the provider open that keeps StateDir locked. The Archive
	// then reads the state on disk, as the next provider would, and not the open one's.
	Held bool
	// SharedDir is a directory that providers of the same service share, on the file system of
	// StateDir, for data that each could fetch again; "": there is none.
	SharedDir string
	// MakeRoom evicts data that can be fetched again from the disk of StateDir, for n bytes for
	// which a write found no room, and reports whether to try again; nil: nothing can be
	// evicted. Any goroutine may call it.
	MakeRoom func(n int64) bool
	// ReadOnly: nothing will be changed, so nothing is probed.
	ReadOnly bool
}

// Errors of Register, which are mistakes of the program, and of Select.
var (
	ErrBadName       = errors.New("not a name for a provider")
	ErrReservedName  = errors.New("the name is reserved")
	ErrDuplicateName = errors.New("the name is taken")
	ErrUnknown       = errors.New("storage_provider_unknown")
)

// Registry finds drivers by name. The zero Registry is empty and ready; there is no global one.
// All methods may be called concurrently.
type Registry struct {
	mu      sync.RWMutex // guards drivers
	drivers map[string]Driver
}

// Register adds a driver that is none of AIP-35's. It fails, and changes
// nothing, with ErrBadName when the name is empty, or has spaces, control
// characters or upper-case letters; with ErrReservedName when it is one of
// AIP-35's; with ErrDuplicateName; and with ErrInvalid without Open.
func (r *Registry) Register(d Driver) error {
	if slices.Contains(standard, strings.ToLower(d.Name)) {
		return fmt.Errorf("providers: register %q: %w", d.Name, ErrReservedName)
	}
	return r.add(d)
}

// RegisterStandard adds wsmount's own implementation of a name of AIP-35, and
// refuses any other name with ErrReservedName.
func (r *Registry) RegisterStandard(d Driver) error {
	if !slices.Contains(standard, d.Name) {
		return fmt.Errorf("providers: register %q: not a name of AIP-35: %w", d.Name, ErrReservedName)
	}
	return r.add(d)
}

func (r *Registry) add(d Driver) error {
	odd := func(c rune) bool { return unicode.IsSpace(c) || unicode.IsUpper(c) || !unicode.IsPrint(c) }
	if d.Name == "" || strings.IndexFunc(d.Name, odd) >= 0 {
		return fmt.Errorf("providers: register %q: %w", d.Name, ErrBadName)
	}
	if d.Open == nil {
		return fmt.Errorf("providers: register %q: no Open: %w", d.Name, ErrInvalid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.drivers[d.Name]; taken {
		return fmt.Errorf("providers: register %q: %w", d.Name, ErrDuplicateName)
	}
	if r.drivers == nil {
		r.drivers = map[string]Driver{}
	}
	r.drivers[d.Name] = d
	return nil
}

// Get finds a driver. A miss is absence, not an error; its meaning is up to the caller.
func (r *Registry) Get(name string) (Driver, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	d, ok := r.drivers[name]
	return d, ok
}

// List is all drivers, by name.
func (r *Registry) List() []Driver {
	return r.Lookup(Capabilities{})
}

// Lookup is the drivers that may promise all of required, by name.
func (r *Registry) Lookup(required Capabilities) []Driver {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var found []Driver
	for _, d := range r.drivers {
		if len(d.Promises.Missing(required)) == 0 {
			found = append(found, d)
		}
	}
	slices.SortFunc(found, func(a, b Driver) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// Names is the names of all drivers, sorted.
func (r *Registry) Names() []string {
	var names []string
	for _, d := range r.List() {
		names = append(names, d.Name)
	}
	return names
}

// Select is Get for callers that need the driver: a miss is an *UnknownError, and a driver that
// cannot promise all of required is a *CapabilityError. It never returns another driver than
// the one named.
func (r *Registry) Select(name string, required Capabilities) (Driver, error) {
	d, ok := r.Get(name)
	if !ok {
		return Driver{}, &UnknownError{Name: name, Registered: r.Names()}
	}
	if missing := d.Promises.Missing(required); len(missing) > 0 {
		return Driver{}, &CapabilityError{Provider: name, Missing: missing}
	}
	return d, nil
}

// UnknownError is the error that no driver has a name. It is ErrUnknown.
type UnknownError struct {
	Name       string
	Registered []string
}

// Error begins with the code of the AIP-35 adapter guide and lists the known names.
func (e *UnknownError) Error() string {
	there := "nothing is"
	if len(e.Registered) > 0 {
		there = strings.Join(e.Registered, ", ") + " are"
	}
	return fmt.Sprintf("%v: %q is not built into this wsmount (%s)", ErrUnknown, e.Name, there)
}

// Unwrap is ErrUnknown.
func (e *UnknownError) Unwrap() error { return ErrUnknown }

// CheckKeys refuses keys of s.Config that are not among known, with
// ErrInvalid; a misspelt prefix must not open a whole bucket.
func (s Settings) CheckKeys(known ...string) error {
	var odd []string
	for key := range s.Config {
		if !slices.Contains(known, key) {
			odd = append(odd, key)
		}
	}
	if len(odd) == 0 {
		return nil
	}
	slices.Sort(odd)
	return fmt.Errorf("config has no %s (known: %s): %w",
		strings.Join(odd, ", "), strings.Join(known, ", "), ErrInvalid)
}
