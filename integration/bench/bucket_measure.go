package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A bucketRow is what was measured of one workload.
type bucketRow struct {
	row
	w      bucketWorkload
	losses map[kind]loss
	cost   requests // of wsmount, in the first round
	notes  []string // what other programs could not do
	slow   map[kind]bool
}

const (
	// workTime is what a workload may take: not every program ends.
	workTime = 4 * time.Minute
	// slowTime is what another program's workload may take to be measured in
	// more than one round.
	slowTime = 10 * time.Second
	// staleTime is longer than a store is believed.
	staleTime = 2 * time.Second
)

// measure runs the rounds. What fails in wsmount is a problem of its row, what
// fails elsewhere a note, and the rest goes on.
func (s *bucketSession) measure(ctx context.Context) ([]*bucketRow, error) {
	var rows []*bucketRow
	for _, w := range bucketWorkloads() {
		if !s.b.o.run.MatchString(w.name) {
			continue
		}
		r := &bucketRow{row: row{w: w.workload}, w: w, losses: map[kind]loss{}, slow: map[kind]bool{}}
		if w.needs != "" && !installed(w.needs) {
			r.left = w.needs + " is not installed"
		}
		rows = append(rows, r)
	}
	for round := range s.b.o.rounds {
		for _, r := range rows {
			if r.left != "" {
				continue
			}
			s.progress(round, r.w.name)
			r.rounds = append(r.rounds, s.round(ctx, r, round))
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
	}
	s.progress(0, "")
	return rows, nil
}

// round measures a workload once on every mount that is not too slow, each round
// beginning with another, and what is possible.
func (s *bucketSession) round(ctx context.Context, r *bucketRow, round int) map[kind]float64 {
	values := map[kind]float64{}
	for i := range s.mounts {
		t := s.mounts[(i+round)%len(s.mounts)]
		if r.slow[t.kind] || ctx.Err() != nil {
			continue
		}
		describe := t.kind == wsmount && round == 0
		if describe && r.w.writeBack {
			// What is described is sent before the unmount, which then has
			// nothing to prove: that is another mount.
			_ = s.once(ctx, t, r, describe)
			describe = false
		}
		start := time.Now()
		values[t.kind] = s.once(ctx, t, r, describe)
		r.slow[t.kind] = t.kind != wsmount && time.Since(start) > slowTime
	}
	var err error
	if r.w.limit != nil {
		values[possible], err = r.w.limit(ctx, s.b)
	} else {
		values[possible], err = s.work(ctx, s.disk, r, false)
	}
	if err != nil {
		values[possible] = absent
		r.problems = append(r.problems, fmt.Sprintf("%s, limit: %v", r.w.name, err))
	}
	return values
}

// once is a workload on a mount that is there for it alone.
func (s *bucketSession) once(ctx context.Context, t *bucketTree, r *bucketRow, describe bool) float64 {
	err := t.mount(ctx, r.w)
	v := absent
	if err == nil {
		v, err = s.work(ctx, t, r, describe)
	}
	err = errors.Join(err, t.stop())
	if err == nil && r.w.writeBack {
		err = s.look(ctx, t, r)
	}
	if err == nil {
		return v
	}
	said := fmt.Sprintf("%s: %v", r.w.name, err)
	if t.kind == wsmount {
		r.problems = append(r.problems, said)
	} else {
		r.notes = append(r.notes, said)
	}
	return absent
}

// work lets the worker work. Files that were closed in a canonical mount are
// looked for at once, while it is still mounted.
func (s *bucketSession) work(ctx context.Context, t *bucketTree, r *bucketRow, describe bool) (float64, error) {
	limited, cancel := context.WithTimeout(ctx, workTime)
	defer cancel()
	if _, err := t.tree.work(limited, phaseSetup, r.w.workload); err != nil {
		return 0, err
	}
	if r.w.again {
		if err := t.forget(ctx); err != nil {
			return 0, err
		}
	}
	if r.w.stale && t.kind != disk {
		time.Sleep(staleTime)
	}
	asked, err := t.asked(ctx)
	if err != nil {
		return 0, err
	}
	v, err := t.tree.work(limited, phaseRun, r.w.workload)
	if err != nil || t.kind == disk {
		return v, err
	}
	if !r.w.writeBack {
		err = s.look(ctx, t, r)
	}
	if err == nil && describe {
		err = t.describe(ctx, r, asked)
	}
	return v, err
}

// look counts what the bucket does not have, over all rounds.
func (s *bucketSession) look(ctx context.Context, t *bucketTree, r *bucketRow) error {
	if r.w.wrote == nil {
		return nil
	}
	l, err := r.w.wrote(ctx, s.b, t.prefix)
	if err != nil {
		return fmt.Errorf("looking into the bucket: %w", err)
	}
	sum := r.losses[t.kind]
	r.losses[t.kind] = loss{lost: sum.lost + l.lost, of: sum.of + l.of}
	if l.lost > 0 && t.kind == wsmount {
		return fmt.Errorf("lost %d of %d, such as %s", l.lost, l.of, l.key)
	}
	return nil
}

// describe says what the workload has asked of the service since then, until
// everything was sent, and how the kernel serves its file.
func (t *bucketTree) describe(ctx context.Context, r *bucketRow, asked requests) error {
	if err := t.saved(ctx); err != nil {
		return err
	}
	now, err := t.asked(ctx)
	if err != nil {
		return err
	}
	r.cost = now.since(asked)
	if r.w.probe != "" {
		r.io, err = t.ioMode(ctx, r.w.workload)
	}
	return err
}
