package providers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

func driver(name string, promises providers.Capabilities) providers.Driver {
	return providers.Driver{Name: name, Promises: promises, Open: func(context.Context, providers.Settings) (providers.Provider, error) {
		return nil, providers.ErrUnsupported
	}}
}

func TestRegister(t *testing.T) {
	for _, c := range []struct {
		name     string
		driver   providers.Driver
		standard bool
		want     error
	}{
		{"new", driver("acme-store", providers.Capabilities{}), false, nil},
		{"empty", driver("", providers.Capabilities{}), false, providers.ErrBadName},
		{"space", driver("acme store", providers.Capabilities{}), false, providers.ErrBadName},
		{"upper case", driver("Acme", providers.Capabilities{}), false, providers.ErrBadName},
		{"control character", driver("a\x1b", providers.Capabilities{}), false, providers.ErrBadName},
		{"reserved", driver("github", providers.Capabilities{}), false, providers.ErrReservedName},
		{"reserved, disguised", driver("GitHub", providers.Capabilities{}), false, providers.ErrReservedName},
		{"taken", driver("taken", providers.Capabilities{}), false, providers.ErrDuplicateName},
		{"no Open", providers.Driver{Name: "x"}, false, providers.ErrInvalid},
		{"standard", driver("github", providers.Capabilities{}), true, nil},
		{"standard, taken", driver("local-fs", providers.Capabilities{}), true, providers.ErrDuplicateName},
		{"not standard", driver("acme-store", providers.Capabilities{}), true, providers.ErrReservedName},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRegistry(t)
			before := r.Names()
			register := r.Register
			if c.standard {
				register = r.RegisterStandard
			}
			err := register(c.driver)
			assert.Is(t, err, c.want)
			if err != nil && !slices.Equal(r.Names(), before) {
				t.Errorf("a refusal changed the registry to %q", r.Names())
			}
			_, found := r.Get(c.driver.Name)
			assert.False(t, err == nil && !found, "not there afterwards")
		})
	}
}

func newRegistry(t *testing.T) *providers.Registry {
	t.Helper()
	r := &providers.Registry{}
	err := errors.Join(
		r.Register(driver("taken", providers.Capabilities{Writable: true})),
		r.RegisterStandard(driver("local-fs", providers.Capabilities{Writable: true, Durable: true})))
	assert.OK(t, err)
	return r
}

// A miss is absence for Get and a loud refusal for Select, which never puts another in its place.
func TestSelect(t *testing.T) {
	r := newRegistry(t)
	_, found := r.Get("nope")
	assert.False(t, found, "found what is not there")
	_, err := r.Select("nope", providers.Capabilities{})
	assert.True(t, errors.Is(err, providers.ErrUnknown) && !errors.Is(err, providers.ErrNotExist), "miss", err)
	for _, part := range []string{"storage_provider_unknown: ", `"nope"`, "not built into this wsmount", "local-fs, taken"} {
		assert.False(t, err != nil && !strings.Contains(err.Error(), part), "does not say", part, err)
	}
	_, err = (&providers.Registry{}).Select("nope", providers.Capabilities{})
	assert.Is(t, err, providers.ErrUnknown, "empty registry")
	_, err = r.Select("taken", providers.Capabilities{Writable: true, Durable: true})
	var lacking *providers.CapabilityError
	assert.True(t, errors.As(err, &lacking) && lacking.Provider == "taken" && slices.Equal(lacking.Missing, []string{"Durable"}), "too little:", err)
	assert.Equal(t, assert.Of(r.Select("local-fs", providers.Capabilities{Durable: true})).OK(t).Name, "local-fs", "hit")
}

func TestLookup(t *testing.T) {
	r := newRegistry(t)
	assert.Slice(t, r.Names(), []string{"local-fs", "taken"}, "names")
	got := r.Lookup(providers.Capabilities{Durable: true})
	assert.True(t, len(got) == 1 && got[0].Name == "local-fs", "lookup", got)
	other := &providers.Registry{}
	assert.Equal(t, len(other.List()), 0, "registries share what they hold")
}

func TestRegistryConcurrently(t *testing.T) {
	r := &providers.Registry{}
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			errs[i] = r.Register(driver("same", providers.Capabilities{}))
			r.Get("same")
			r.Names()
		})
	}
	wg.Wait()
	refused := 0
	for _, err := range errs {
		if errors.Is(err, providers.ErrDuplicateName) {
			refused++
		}
	}
	assert.Equal(t, refused, len(errs)-1, "of", len(errs), "refused")
}

func TestCheckKeys(t *testing.T) {
	s := providers.Settings{Config: map[string]string{"bucket": "b", "prefx": "p", "a": ""}}
	err := s.CheckKeys("bucket", "prefix")
	assert.True(t, errors.Is(err, providers.ErrInvalid) && strings.Contains(err.Error(), "a, prefx") && strings.Contains(err.Error(), "bucket, prefix"), "got", err)
	assert.Is(t, s.CheckKeys("bucket", "prefx", "a", "more"), nil, "known keys")
}
