package table

import (
	"cmp"
	"math"
	"time"
)

// Time is a time of an inode: one that a program or the remote may have set to any
// year, so nanoseconds since 1970 in 64 bits, which end in 1677 and 2262, do not do.
type Time struct {
	Sec  int64 // since 1970
	Nsec int32 // from 0 to 999,999,999
}

// The first and the last second that is kept: the years 0 to 9999, the range of RFC 3339
// and so of JSON.
const (
	firstSecond = -62_167_219_200
	lastSecond  = 253_402_300_799
)

const second = int64(time.Second)

// TimeOf is a time as the table keeps it. One that is out of range becomes the
// nearest that is not, as file systems do it.
func TimeOf(t time.Time) Time {
	switch sec := t.Unix(); {
	case sec < firstSecond:
		return Time{Sec: firstSecond}
	case sec > lastSecond:
		return Time{Sec: lastSecond, Nsec: 999_999_999}
	default:
		return Time{Sec: sec, Nsec: int32(t.Nanosecond())}
	}
}

// Stamp is the time of a clock in nanoseconds since 1970.
func Stamp(ns int64) Time { return TimeOf(time.Unix(0, ns)) }

// Nanoseconds is a time in nanoseconds since 1970, as a clock has it: one that 64 bits
// cannot hold, which is before 1678 or after 2262, is the nearest that they can.
func Nanoseconds(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// Time is t as the rest of the program has it.
func (t Time) Time() time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }

// Compare is below 0 if t is before o, and above 0 if it is after.
func (t Time) Compare(o Time) int {
	return cmp.Or(cmp.Compare(t.Sec, o.Sec), cmp.Compare(t.Nsec, o.Nsec))
}

// Latest is the later of two times.
func Latest(a, b Time) Time {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}

// Next is the first time after t.
func (t Time) Next() Time { return TimeOf(t.Time().Add(1)) }

// nanoseconds is t in nanoseconds since 1970, if they fit.
func (t Time) nanoseconds() (ns int64, fit bool) {
	if t.Sec <= math.MinInt64/second || t.Sec >= math.MaxInt64/second {
		return 0, false
	}
	return t.Sec*second + int64(t.Nsec), true
}
