package cache

import "github.com/wsmount/wsmount/cache/internal/describe"

// describing gives the extended attributes with which programs read the state of an inode.
type describing = describe.Describer

func newDescriber(v *Volume) *describing {
	return &describing{Tree: v.tree, Provider: v.o.Provider, Rules: v.o.shown(), Holds: v.holds}
}
