package memory_test

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// BenchmarkServed is what a call costs on the way to another process.
func BenchmarkServed(b *testing.B) {
	c := dial(b, serve(b, memory.New(memory.Options{})))
	assert.OK(b, assert.ErrOf(c.Write(b.Context(), a, providers.String("x"), unconditional)))
	b.Run("stat", func(b *testing.B) {
		for b.Loop() {
			assert.OK(b, assert.ErrOf(c.Stat(b.Context(), a)))
		}
	})
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			assert.OK(b, assert.ErrOf(c.Write(b.Context(), a, providers.String("x"), unconditional)))
		}
	})
}

// BenchmarkStore is what a call costs here.
func BenchmarkStore(b *testing.B) {
	p := memory.New(memory.Options{})
	b.Run("create", func(b *testing.B) {
		dir := providers.MustLocator("some/directory")
		for i := 0; b.Loop(); i++ {
			l, _ := dir.Child(name(i))
			assert.OK(b, assert.ErrOf(p.Write(b.Context(), l, providers.String("x"), unconditional)))
		}
	})
}

func name(i int) string {
	return string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune(0x4e00+i/676))
}
