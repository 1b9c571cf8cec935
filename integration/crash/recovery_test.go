package crash

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// After a kill with many changed files the mount is back at once.
func TestRecoveryTime(t *testing.T) {
	files := 2000
	if *kills >= 100 {
		files = 10_000
	}
	s := newStage(t, syncAsked)
	s.mount()
	for i := range files {
		if i%500 == 0 {
			if err := os.Mkdir(fmt.Sprint(s.m.Dir, "/d", i/500), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(fmt.Sprintf("%s/d%d/%d", s.m.Dir, i/500, i), fmt.Appendf(nil, "file %d", i), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := treeLines(t, s.m.Dir)
	s.m.Kill()
	began := time.Now()
	s.m.Start()
	took := time.Since(began)
	t.Logf("%d changed files: back after %v", files, took.Round(time.Millisecond))
	if took > 10*time.Second {
		t.Errorf("back after %v, want 2s", took)
	}
	got := treeLines(t, s.m.Dir)
	if len(got) != len(want) {
		t.Fatalf("%d entries, and there were %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %s, want %s", got[i], want[i])
		}
	}
	s.w.MustRun("commit", s.m.Dir)
	s.settle()
	s.converged()
}
