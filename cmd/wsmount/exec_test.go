package main

import (
	"testing"
	"time"
)

// A person at a terminal is not interrupted, unless the workspace says when.
func TestTimeLimit(t *testing.T) {
	for _, tt := range []struct {
		name     string
		terminal bool
		declared int64
		want     time.Duration
	}{
		{"a program", false, 0, defaultTimeout},
		{"a program, declared", false, 90_000, 90 * time.Second},
		{"a terminal", true, 0, 0},
		{"a terminal, declared", true, 90_000, 90 * time.Second},
	} {
		if got := timeLimit(tt.terminal, tt.declared); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
