package main

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"of an odd number", []float64{9, 1, 5}, 5},
		{"of an even number", []float64{4, 1, 2, 9}, 3},
		{"without what failed", []float64{absent, 7, absent}, 7},
		{"of nothing", []float64{absent}, absent},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := median(c.values)
			assert.False(t, got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)), got, c.want)
		})
	}
}

// A slow round hits all trees, and so must not move the ratio.
func TestRatioIsByRound(t *testing.T) {
	r := row{rounds: []map[kind]float64{{wsmount: 90, disk: 100}, {wsmount: 9, disk: 10}, {wsmount: 50, disk: 100}}}
	assert.Equal(t, r.ratio(disk), 0.9)
	got := r.ratio(loopback)
	assert.True(t, math.IsNaN(got), "ratio to what was not measured", got)
}

func TestMissed(t *testing.T) {
	rounds := []map[kind]float64{{wsmount: 80, loopback: 70, disk: 100}}
	for _, c := range []struct {
		name string
		bar  bar
		root bool
		want string // what the miss says, empty: none
	}{
		{"reached", bar{disk: 0.8, loopback: 1.1, most: 80}, true, ""},
		{"too slow for the disk", bar{disk: 0.81}, true, "0.80 of ext4"},
		{"too slow for loopback", bar{loopback: 1.2}, true, "1.14 of loopback"},
		{"too much", bar{most: 79}, true, "at most 79"},
		{"only root's", bar{disk: 0.81, rootOnly: true}, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := row{w: workload{name: "w", bar: c.bar}, rounds: rounds}
			got := strings.Join(r.missed(&session{root: c.root}), "; ")
			assert.True(t, (got == "") == (c.want == "") && strings.Contains(got, c.want), got, c.want)
		})
	}
}

// Every workload must be able to run; names are directories and flags.
func TestWorkloadsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range workloads() {
		assert.True(t, !seen[w.name] && w.name != "" && !strings.Contains(w.name, "/"), w.name, "is no name, or stands twice")
		seen[w.name] = true
		assert.False(t, w.run == nil && w.measure == nil, w.name, "does nothing")
		assert.False(t, w.between == cold && !strings.Contains(w.name, "disk"), w.name, "does not say that it reads from the disk")
	}
}

// The work itself, on a plain directory: every phase runs, and twice. What is measured
// has a thousand times the files.
func TestWorkOnADirectory(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir := testrun.InMemory(t)
	for _, w := range nameWorkloads() {
		if w.between != nothing {
			continue // its tree is large
		}
		for round := range 2 {
			t.Run(fmt.Sprintf("%s, round %d", w.name, round), func(t *testing.T) {
				p := place{dir: dir, name: w.name, files: 3}
				assert.OK(t, w.setup(p))
				got, err := w.run(p)
				assert.True(t, err == nil && (got > 0), got, err)
			})
		}
	}
}

// A tree that cannot be measured is a problem in its row, and no figure.
func TestFailureIsAProblem(t *testing.T) {
	s := &session{b: &bench{o: options{rounds: 1, run: regexp.MustCompile(""), io: "any"}}}
	s.trees = []*tree{{kind: disk, s: s}}
	r := row{w: workload{name: "w", measure: func(context.Context, *tree, workload) (float64, error) { return 1, fs.ErrInvalid }, unit: "files"}}
	values := s.round(t.Context(), &r, 0)
	assert.True(t, len(r.problems) == 1 && math.IsNaN(values[disk]), "got problems", r.problems, values)
}

func TestTheMachineIsKnown(t *testing.T) {
	assert.True(t, threads(fmt.Sprint(os.Getpid())) != 0 && threads("0") == 0, "processor time is not counted")
}
