package lines

// marked is the merged text with conflicts between markers.
func (m *merge) marked(l Labels) []byte {
	return m.render(func(out []byte, r region) []byte {
		end := m.markerEnd(r)
		out = marker(out, "<<<<<<<", l.Ours, end)
		out = ended(out, m.ours.bytes(r.ours), end)
		out = marker(out, "=======", "", end)
		out = ended(out, m.theirs.bytes(r.theirs), end)
		return marker(out, ">>>>>>>", l.Theirs, end)
	})
}

// united is the merged text with both sides of each conflict.
func (m *merge) united() []byte {
	return m.render(func(out []byte, r region) []byte {
		out = ended(out, m.ours.bytes(r.ours), m.markerEnd(r))
		return append(out, m.theirs.bytes(r.theirs)...)
	})
}

// render is ours with theirs in regions that take theirs, and with the lines that conflict
// appends in regions that take both.
func (m *merge) render(conflict func(out []byte, r region) []byte) []byte {
	out := make([]byte, 0, max(len(m.ours.data), len(m.theirs.data)))
	done := 0 // lines of ours
	for _, r := range m.regions {
		if r.choice != takeTheirs && r.choice != takeBoth {
			continue
		}
		out = append(out, m.ours.bytes(span{done, r.ours.lo})...)
		if r.choice == takeBoth {
			out = conflict(out, r)
		} else {
			out = append(out, m.theirs.bytes(r.theirs)...)
		}
		done = r.ours.hi
	}
	return append(out, m.ours.bytes(span{done, len(m.ours.ids)})...)
}

// marker appends a line that marks where a side begins or ends.
func marker(out []byte, sign, label string, end []byte) []byte {
	out = append(out, sign...)
	if label != "" {
		out = append(append(out, ' '), label...)
	}
	return append(out, end...)
}

// ended appends lines, and an end to the last one if it has none.
func ended(out, lines, end []byte) []byte {
	out = append(out, lines...)
	if n := len(lines); n > 0 && lines[n-1] != '\n' {
		out = append(out, end...)
	}
	return out
}

// markerEnd is the line end of markers: in CR LF where the base begins with such a line and
// neither side has a plain LF before the conflict.
func (m *merge) markerEnd(r region) []byte {
	ours, theirs := m.ours.endAt(max(r.ours.lo-1, 0)), m.theirs.endAt(max(r.theirs.lo-1, 0))
	if ours == endsLF || theirs == endsLF || m.base.endAt(0) != endsCRLF {
		return newline
	}
	return crlf
}
