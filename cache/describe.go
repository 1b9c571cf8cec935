package cache

import "github.com/wsmount/wsmount/cache/internal/describe"

// describing says what programs read of inodes beside their content.
type describing = describe.Describer

func newDescriber(v *Volume) *describing {
	return &describing{Tree: v.tree, Provider: v.o.Provider, Rules: v.o.shown(), Holds: v.holds}
}
