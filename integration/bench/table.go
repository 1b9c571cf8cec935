package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// printTable writes one user's rows. A ratio of rates above 1 means that
// wsmount is faster; an exclamation mark stands behind a bar that was missed.
func printTable(w io.Writer, s *session, rows []row) {
	fmt.Fprintf(w, "\nas %s, %d rounds by %s clock, Linux %s, %d processors, load %s\n\n",
		s.user, s.b.o.rounds, s.b.o.clock, kernel(), runtime.NumCPU(), load())
	const format = "%-30s %-9s %9s %9s %9s %7s %7s  %-14s %s\n"
	fmt.Fprintf(w, format, "workload", "unit", wsmount, loopback, disk, "/loopb.", "/ext4", "bar", "io mode")
	for _, r := range rows {
		fmt.Fprintf(w, format, r.w.name, r.w.unit, figure(r.value(wsmount)), figure(r.value(loopback)), figure(r.value(disk)),
			ratio(r.ratio(loopback)), ratio(r.ratio(disk)), r.barText(s), r.io)
		if r.left != "" {
			fmt.Fprintln(w, "  left out:", r.left)
		}
		for _, p := range r.problems {
			fmt.Fprintln(w, "  failed:", p)
		}
	}
}

func (r row) barText(s *session) string {
	b := r.w.bar
	var parts []string
	add := func(bound float64, format string) {
		if bound > 0 {
			parts = append(parts, fmt.Sprintf(format, bound))
		}
	}
	if !b.rootOnly || s.root {
		add(b.disk, "ext4 %.2f")
		add(b.loopback, "loopb. %.2f")
		add(b.limit, "limit %.2f")
		add(b.most, "<= %v")
		add(b.least, ">= %v")
	}
	if len(r.missed(s)) > 0 {
		parts = append(parts, "!")
	}
	return strings.Join(parts, " ")
}

func figure(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v < 10:
		return fmt.Sprintf("%.3f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func ratio(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// load is how many programs wanted a processor in the last minute, this one
// among them: far above the number of processors, wall clocks say little.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}
