package cache

import "github.com/wsmount/wsmount/cache/internal/offline"

// ContentUsage says what content takes.
func (v *Volume) ContentUsage() ContentUsage { return offline.UsageOf(v.store) }

// MakeRoom gives up clean content for n bytes that others could not write, or as much
// as the disk lacks, because they found it full, and reports whether trying again may
// help. It must not be called from a callback of the volume.
func (v *Volume) MakeRoom(n int64) bool { return v.store.MakeRoom(n) }

// ClearContent gives up all clean content that is neither in use nor pinned, and says how many
// bytes the disk got back. It is fetched again when it is read.
func (v *Volume) ClearContent() (freed int64) { return v.room.Clear() }
