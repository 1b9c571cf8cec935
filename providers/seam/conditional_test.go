package seam_test

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/seam"
)

// It is what sha256sum(1) prints of the file.
func TestETag(t *testing.T) {
	const hello = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
	assert.Equal(t, seam.ETagOf("hello\n"), seam.ETag(hello))
	for text, want := range map[string]seam.ETag{hello: hello, `"` + hello + `"`: hello, "none": seam.None} {
		assert.Of(seam.ParseETag(text)).Equal(t, want, text)
	}
	assert.Equal(t, seam.None.String(), "none")
	for _, text := range []string{"", "*", hello[:40], "5891B5" + hello[6:], hello + "00", "W/" + hello} {
		assert.Is(t, assert.ErrOf(seam.ParseETag(text)), providers.ErrInvalid, text)
	}
}

// unguarded is a provider that asks no condition.
type unguarded struct{ providers.Provider }

func (u unguarded) Capabilities() providers.Capabilities {
	c := u.Provider.Capabilities()
	c.Conditions = providers.Conditions{}
	return c
}

// Nothing is written where a condition could not be kept, or nothing may be written at all.
func TestConditionsRefused(t *testing.T) {
	for want, p := range map[error]providers.Provider{
		providers.ErrUnsupported: unguarded{memory.New(memory.Options{})},
		providers.ErrReadOnly:    providers.ReadOnly(memory.New(memory.Options{}), providers.ReadOnlyOptions{}),
	} {
		b, l := seam.New(p), at(t, "f")
		assert.Is(t, assert.ErrOf(b.WriteIf(t.Context(), l, seam.None, "x")), want)
		assert.False(t, assert.Of(b.Exists(t.Context(), l)).OK(t), "it was written")
	}
}

// What is to stay as it is is not written.
func TestUpdate(t *testing.T) {
	p := memory.New(memory.Options{})
	b, l := seam.New(p), at(t, "f")
	put := func(text string, ok bool) error {
		return seam.Update(t.Context(), b, l, func(was string, there bool) (string, bool, error) {
			assert.Equal(t, there, was != "", "whether it is there")
			return text, ok, nil
		})
	}
	assert.OK(t, put("x", false))
	assert.False(t, assert.Of(b.Exists(t.Context(), l)).OK(t), "it was written")
	assert.OK(t, put("x", true))
	assert.OK(t, put("y", false))
	assert.Of(b.Read(t.Context(), l)).Equal(t, "x")
}
