package proc

import (
	"os"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		text                           string
		dead, stopped, exiting, killed bool
	}{
		{"7 (a) b) S 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 55 0 0 0 0 0 0 0 0 0 0", false, false, false, false},
		{"7 (a) T 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 55 0 0 0 0 0 0 0 0 0 0", false, true, false, false},
		{"7 (T) t 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 55 0 0 0 0 0 0 0 0 0 0", false, false, false, false}, // by a tracer, for a moment
		{"7 (a) S 1 1 1 0 -1 4194308 0 0 0 0 0 0 0 0 20 0 1 0 55 0 0 0 0 0 0 0 0 0 0", false, false, true, false},
		{"7 (Z) Z 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 55 0 0 0 0 0 0 0 0 256 0", true, false, false, true},
	} {
		if err := os.WriteFile(dir+"/stat", []byte(tt.text+strings.Repeat(" 0", 20)), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Read(dir)
		if err != nil || s.Started != 55 || s.Dead() != tt.dead || s.Stopped() != tt.stopped || s.Exiting() != tt.exiting || s.Killed() != tt.killed {
			t.Errorf("%s: got %+v, %v", tt.text, s, err)
		}
	}
	if s, err := Read("/proc/self"); err != nil || s.Started == 0 || s.Dead() || s.Exiting() || s.Killed() {
		t.Errorf("this process: got %+v, %v", s, err)
	}
	if err := os.WriteFile(dir+"/stat", []byte("7 (a) S 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil {
		t.Error("half a file was read")
	}
}
