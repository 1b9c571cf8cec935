package odb

import "github.com/dgraph-io/ristretto/v2"

// inflated is an inflated object.
type inflated struct {
	kind    Kind
	content []byte
}

// memory keeps inflated objects up to a number of bytes, preferably those that are asked for
// often. It may forget any of them at any time, and a new entry may take a moment to be found.
type memory[K ristretto.Key] struct{ *ristretto.Cache[K, inflated] }

// overhead is what an entry costs beside its content, about.
const overhead = 200

func newMemory[K ristretto.Key](bytes int64) memory[K] {
	cache, err := ristretto.NewCache(&ristretto.Config[K, inflated]{
		MaxCost: bytes, NumCounters: bytes / overhead, BufferItems: 64, IgnoreInternalCost: true})
	if err != nil {
		panic(err) // numbers that are none
	}
	return memory[K]{cache}
}

func (m memory[K]) put(key K, o inflated) {
	m.Set(key, o, int64(len(o.content)+overhead))
}
