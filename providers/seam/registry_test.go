package seam_test

import (
	"context"
	"errors"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/seam"
)

// opens is a class that makes a backend in memory, and counts how many.
func opens(count *int, promises seam.Capabilities) seam.Class {
	return seam.Class{Promises: promises, Open: func(context.Context, seam.Settings) (seam.Backend, error) {
		*count++
		return &keeps{seam.New(memory.New(memory.Options{})), promises, false}, nil
	}}
}

// keeps is a backend that promises what it is told to.
type keeps struct {
	*seam.Store
	promises seam.Capabilities
	closed   bool
}

func (k *keeps) Capabilities() seam.Capabilities { return k.promises }

func (k *keeps) Close() error {
	k.closed = true
	return k.Store.Close()
}

func TestRegistry(t *testing.T) {
	var r, other seam.Registry
	var count int
	class := opens(&count, seam.Capabilities{})
	assert.Equal(t, len(r.Protocols()), 0, "protocols of an empty registry")
	for _, name := range []string{"vault", "device-local"} {
		assert.OK(t, r.Register(name, class))
	}
	assert.Slice(t, r.Protocols(), []string{"device-local", "vault"})
	assert.True(t, r.Contains("vault"), "vault is missing")
	assert.True(t, r.Get("redis") == nil && !r.Contains("redis"), "a miss is not nil")
	assert.Equal(t, len(other.Protocols()), 0, "protocols of another registry")

	var protocol *seam.ProtocolError
	for _, name := range []string{"", "vault"} {
		err := r.Register(name, opens(&count, seam.Capabilities{Sync: true}))
		assert.True(t, errors.As(err, &protocol) && protocol.Protocol == name && errors.Is(err, providers.ErrInvalid), "register", name, "got", err)
	}
	assert.Equal(t, r.Get("vault").Promises, seam.Capabilities{}, "after a duplicate")
	assert.OK(t, r.Clobber("vault", opens(&count, seam.Capabilities{Sync: true})))
	assert.Equal(t, r.Get("vault").Promises, seam.Capabilities{Sync: true}, "clobbered")
	assert.True(t, errors.As(r.Clobber("", class), &protocol), "an empty name was clobbered")

	var typ *seam.TypeError
	err := r.Register("nothing", seam.Class{})
	assert.True(t, errors.As(err, &typ) && !errors.As(err, new(*seam.ProtocolError)) && !r.Contains("nothing"), "register what opens nothing:", err)
	assert.Equal(t, count, 0, "backends that were opened")
}
