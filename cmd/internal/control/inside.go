package control

import "slices"

// Inside is what programs in the mount may know of a part: no place of the host, and of a
// part that is closed no name of a file but those that programs have asked for.
func (p Part) Inside() Part {
	p.Path, p.Store = "", nil
	if p.Moved != "" {
		p.Moved = "elsewhere"
	}
	if p.Copy != nil {
		copied := *p.Copy
		copied.StateDir, p.Copy = "", &copied
	}
	if p.Closed == "" {
		return p
	}
	p.OtherMounts, p.Nested = nil, nil
	p.Recent = slices.DeleteFunc(slices.Clone(p.Recent), func(f Failure) bool { return f.Errno == "" })
	if p.Copy != nil {
		p.Copy.InFlight, p.Copy.Held = nil, nil
	}
	return p
}
