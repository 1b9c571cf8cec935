package main

import (
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
)

// printBuckets writes one user's tables. A ratio above 1 means that wsmount is
// faster, also where the figure is a time.
func printBuckets(w io.Writer, s *bucketSession, rows []*bucketRow) {
	o := s.b.o
	fmt.Fprintf(w, "\nas %s, a bucket %v away, large file of %d MiB, %d rounds, Linux %s, %d processors, load %s\n",
		s.user, o.latency, o.size, o.rounds, kernel(), runtime.NumCPU(), load())
	if len(s.missing) > 0 {
		fmt.Fprintf(w, "left out, not installed: %s\n", strings.Join(s.missing, ", "))
	}
	fmt.Fprintln(w)
	const left, right = "%-30s %-8s", " %9s %-5s %6s  %-14s %s\n"
	fmt.Fprintf(w, left, "workload", "unit")
	for _, t := range s.mounts {
		fmt.Fprintf(w, " %9s", t.kind)
	}
	fmt.Fprintf(w, right, "limit", "of", "ratio", "bar", "io mode")
	for _, r := range rows {
		fmt.Fprintf(w, left, r.w.name, r.w.unit)
		for _, t := range s.mounts {
			fmt.Fprintf(w, " %9s", figure(r.value(t.kind)))
		}
		fmt.Fprintf(w, right, figure(r.value(possible)), r.limitName(), ratio(r.ratio(possible)), r.barText(s.session), r.io)
		r.printProblems(w)
	}
	printLosses(w, s, rows)
	printRequests(w, rows)
}

func (r *bucketRow) limitName() string {
	if r.w.limit == nil {
		return string(disk)
	}
	return "SDK"
}

func (r *bucketRow) printProblems(w io.Writer) {
	if r.left != "" {
		fmt.Fprintln(w, "  left out:", r.left)
	}
	for _, p := range r.problems {
		fmt.Fprintln(w, "  failed:", p)
	}
	for _, n := range r.notes {
		fmt.Fprintln(w, "  note:", n)
	}
}

func printLosses(w io.Writer, s *bucketSession, rows []*bucketRow) {
	fmt.Fprintln(w, "\nfiles that the bucket lacks, or a byte of them; a cache may have them for a later mount")
	for _, r := range rows {
		if r.w.wrote == nil {
			continue
		}
		when := "after close"
		if r.w.writeBack {
			when = "after umount"
		}
		var parts []string
		for _, t := range s.mounts {
			if l, ok := r.losses[t.kind]; ok {
				parts = append(parts, fmt.Sprintf("%s lost %d of %d", t.kind, l.lost, l.of))
			}
		}
		fmt.Fprintf(w, "%-30s %-13s %s\n", r.w.name, when, strings.Join(parts, ", "))
	}
}

func printRequests(w io.Writer, rows []*bucketRow) {
	const format = "%-30s %7v %9s %9s  %s\n"
	fmt.Fprintln(w, "\nwhat wsmount asked of the service, once")
	fmt.Fprintf(w, format, "workload", "total", "MiB out", "MiB in", "requests")
	for _, r := range rows {
		count, sent, received := r.cost.total()
		fmt.Fprintf(w, format, r.w.name, count, figure(sent), figure(received), r.cost)
	}
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
