package control

import "slices"

// Inside is the part as programs in the mount may see it: without paths of the host, and
// for a closed part without names of files, except those in failed requests of programs.
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
