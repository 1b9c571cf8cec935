package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
)

// A row is what was measured of one workload.
type row struct {
	w        workload
	rounds   []map[kind]float64
	io       string
	problems []string
	left     string // why it was left out
}

// measure runs the rounds. What fails is a problem of its row, and the rest
// goes on.
func (s *session) measure(ctx context.Context) ([]row, error) {
	for _, t := range s.trees {
		if err := t.start(ctx); err != nil {
			return nil, err
		}
	}
	rows := s.rows()
	for round := range s.b.o.rounds {
		for i := range rows {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if r := &rows[i]; r.left == "" && (r.w.rounds == 0 || round < r.w.rounds) {
				s.progress(round, r.w.name)
				r.rounds = append(r.rounds, s.round(ctx, r, round))
			}
		}
	}
	s.progress(0, "")
	return rows, nil
}

func (s *session) rows() []row {
	var rows []row
	for _, w := range workloads() {
		if !s.b.o.run.MatchString(w.name) || w.long && s.b.o.run.String() == "" {
			continue
		}
		if s.b.o.memoryd != "" && w.copyBar == nil || s.b.o.memoryd == "" && w.only {
			continue
		}
		if s.b.o.memoryd != "" {
			w.bar = *w.copyBar
		}
		r := row{w: w}
		if w.between == cold && os.Geteuid() != 0 {
			r.left = "only root can drop the disk's caches"
		}
		rows = append(rows, r)
	}
	return rows
}

// round measures a workload once on every tree; each round begins with another.
func (s *session) round(ctx context.Context, r *row, round int) map[kind]float64 {
	values := map[kind]float64{}
	for i := range s.trees {
		t := s.trees[(i+round)%len(s.trees)]
		v, err := s.once(ctx, t, r.w)
		if err == nil && t.kind == wsmount && r.w.probe != "" && round == 0 {
			r.io, err = t.checkMode(ctx, r.w)
		}
		if err != nil {
			r.problems = append(r.problems, err.Error())
			v = absent
		}
		values[t.kind] = v
	}
	return values
}

func (s *session) once(ctx context.Context, t *tree, w workload) (float64, error) {
	if w.measure != nil {
		if t.kind == disk && w.unit != "files" {
			return absent, nil
		}
		return w.measure(ctx, t, w)
	}
	if _, err := t.work(ctx, phaseSetup, w); err != nil {
		return 0, err
	}
	if err := t.prepare(ctx, w.between); err != nil {
		return 0, err
	}
	return t.work(ctx, phaseRun, w)
}

func (t *tree) prepare(ctx context.Context, b between) error {
	switch b {
	case remount:
		if t.remote != nil {
			return t.restartNew(ctx)
		}
		return t.restart(ctx)
	case cold:
		return dropCaches()
	}
	return nil
}

// checkMode is the io mode of the workload's file, and an error if it is not
// the one that this user must get.
func (t *tree) checkMode(ctx context.Context, w workload) (string, error) {
	got, err := t.ioMode(ctx, w)
	want := t.s.wantedMode()
	if t.remote != nil && t.s.b.o.io == "auto" {
		want = "" // of a working copy it depends on what was sent by now
	}
	if err == nil && want != "" && got != want {
		err = fmt.Errorf("%s as %s: io mode is %s, want %s", w.name, t.s.user, got, want)
	}
	return got, err
}

// progress tells a person at a terminal what is going on.
func (s *session) progress(round int, name string) {
	if st, err := os.Stderr.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(os.Stderr, "\r\033[K%s, round %d of %d: %s", s.user, round+1, s.b.o.rounds, name)
	}
}

// median of what exists; absent of nothing.
func median(values []float64) float64 {
	values = slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(values) == 0 {
		return absent
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func (r row) value(k kind) float64 {
	var values []float64
	for _, round := range r.rounds {
		if v, ok := round[k]; ok {
			values = append(values, v)
		}
	}
	return median(values)
}

// ratio is the median of wsmount's figure by the other's, round by round.
func (r row) ratio(k kind) float64 {
	var values []float64
	for _, round := range r.rounds {
		mine, other := orAbsent(round, wsmount), orAbsent(round, k)
		if r.w.less {
			mine, other = other, mine
		}
		values = append(values, mine/other)
	}
	return median(values)
}

func orAbsent(round map[kind]float64, k kind) float64 {
	if v, ok := round[k]; ok {
		return v
	}
	return absent
}

// missed names the bars of this row that were not reached. What was not
// measured is no miss: it is a problem already, or was not asked for.
func (r row) missed(s *session) []string {
	b := r.w.bar
	if b.rootOnly && !s.root {
		return nil
	}
	var out []string
	miss := func(is bool, format string, args ...any) {
		if is {
			out = append(out, fmt.Sprintf("%s as %s: ", r.w.name, s.user)+fmt.Sprintf(format, args...))
		}
	}
	v := r.value(wsmount)
	miss(b.disk > 0 && r.ratio(disk) < b.disk, "%.2f of %s, want %.2f", r.ratio(disk), disk, b.disk)
	miss(b.loopback > 0 && r.ratio(loopback) < b.loopback, "%.2f of %s, want %.2f", r.ratio(loopback), loopback, b.loopback)
	miss(b.limit > 0 && r.ratio(possible) < b.limit, "%.2f of what is possible, want %.2f", r.ratio(possible), b.limit)
	miss(b.most > 0 && v > b.most, "%s %s, want at most %v", figure(v), r.w.unit, b.most)
	miss(b.least > 0 && v < b.least, "%s %s, want at least %v", figure(v), r.w.unit, b.least)
	return out
}
