package seam

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/wsmount/wsmount/providers"
)

// Class is a kind of backend. A registry holds classes, and Select opens a backend of one.
type Class struct {
	Promises Capabilities // the promises of a backend from Open
	// Dir is the directory of this machine for a backend's files, which Select keeps apart from
	// the operator's own spaces. nil: they are elsewhere.
	Dir func(s Settings) string
	// Look tells where Open would find a backend. It changes nothing; a Finding that is Bad has
	// the reason why Open would fail. nil: nothing is known before.
	Look func(ctx context.Context, s Settings) providers.Finding
	// Open makes missing directories, and returns a backend, which the caller closes.
	Open func(ctx context.Context, s Settings) (Backend, error)
}

// Registry finds classes by the name of a protocol. The zero Registry is empty and ready;
// there is no global one. All methods may be used at the same time.
type Registry struct {
	mu      sync.RWMutex // guards classes
	classes map[string]*Class
}

// Register adds a class. A mistake of the program changes nothing: an empty name and one
// that is taken are a ProtocolError, a class that cannot be opened a TypeError.
func (r *Registry) Register(protocol string, c Class) error {
	return r.register(protocol, c, false)
}

// Clobber is Register, but replaces a class that has the name.
func (r *Registry) Clobber(protocol string, c Class) error { return r.register(protocol, c, true) }

func (r *Registry) register(protocol string, c Class, clobber bool) error {
	switch {
	case protocol == "":
		return &ProtocolError{protocol, "a protocol has a name"}
	case c.Open == nil:
		return &TypeError{protocol}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.classes[protocol]; taken && !clobber {
		return &ProtocolError{protocol, "the name is taken"}
	}
	if r.classes == nil {
		r.classes = map[string]*Class{}
	}
	r.classes[protocol] = &c
	return nil
}

// Get finds a class. A miss is nil, and no error: Select decides about it.
func (r *Registry) Get(protocol string) *Class {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.classes[protocol]
}

// Contains reports whether Get finds a class.
func (r *Registry) Contains(protocol string) bool { return r.Get(protocol) != nil }

// Protocols is all names, sorted.
func (r *Registry) Protocols() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.classes))
}

// ProtocolError says that a class was registered under a bad name. It is
// providers.ErrInvalid.
type ProtocolError struct{ Protocol, Reason string }

// Error quotes the name.
func (e *ProtocolError) Error() string {
	return fmt.Sprintf("register %q: %s", e.Protocol, e.Reason)
}

// Unwrap is providers.ErrInvalid.
func (e *ProtocolError) Unwrap() error { return providers.ErrInvalid }

// TypeError says that a registered class opens no backend. It is providers.ErrInvalid.
type TypeError struct{ Protocol string }

// Error quotes the name.
func (e *TypeError) Error() string {
	return fmt.Sprintf("register %q: it opens no backend", e.Protocol)
}

// Unwrap is providers.ErrInvalid.
func (e *TypeError) Unwrap() error { return providers.ErrInvalid }
