package odb

import "fmt"

// deltaSizes are the sizes that a delta begins with: of the base, and of its result.
func deltaSizes(delta []byte) (base, result int64, rest []byte, err error) {
	base, rest = varint(delta)
	if rest != nil {
		result, rest = varint(rest)
	}
	if rest == nil {
		return 0, 0, nil, fmt.Errorf("a delta is cut short: %w", ErrCorrupt)
	}
	return base, result, rest, nil
}

// varint reads a number, the lowest bits first. rest is nil when b ends early.
func varint(b []byte) (n int64, rest []byte) {
	for i, shift := 0, 0; i < len(b) && shift < 63; i, shift = i+1, shift+7 {
		n |= int64(b[i]&127) << shift
		if b[i]&128 == 0 {
			return n, b[i+1:]
		}
	}
	return 0, nil
}

// applyDelta makes an object from its base.
func applyDelta(base, delta []byte) ([]byte, error) {
	from, size, rest, err := deltaSizes(delta)
	broken := fmt.Errorf("a delta does not fit its base: %w", ErrCorrupt)
	switch {
	case err != nil:
		return nil, err
	case from != int64(len(base)) || size > maxObject:
		return nil, broken
	}
	out := make([]byte, 0, min(size, int64(len(base))*4+int64(len(delta))+4096))
	for len(rest) > 0 {
		op := rest[0]
		rest = rest[1:]
		if op&128 == 0 { // that many new bytes
			if op == 0 || int(op) > len(rest) {
				return nil, broken
			}
			out, rest = append(out, rest[:op]...), rest[op:]
		} else { // a part of the base
			var off, n int
			var ok bool
			if off, n, rest, ok = copied(op, rest); !ok || off > len(base) || n > len(base)-off {
				return nil, broken
			}
			out = append(out, base[off:off+n]...)
		}
		if int64(len(out)) > size {
			return nil, broken
		}
	}
	if int64(len(out)) != size {
		return nil, broken
	}
	return out, nil
}

// copied reads the part of the base that comes next.
func copied(op byte, b []byte) (off, n int, rest []byte, ok bool) {
	for bit := range 7 {
		if op>>bit&1 == 0 {
			continue
		}
		if len(b) == 0 {
			return 0, 0, nil, false
		}
		if bit < 4 {
			off |= int(b[0]) << (8 * bit)
		} else {
			n |= int(b[0]) << (8 * (bit - 4))
		}
		b = b[1:]
	}
	if n == 0 {
		n = 1 << 16
	}
	return off, n, b, true
}
