package proc

import (
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
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
		assert.OK(t, os.WriteFile(dir+"/stat", []byte(tt.text+strings.Repeat(" 0", 20)), 0o600))
		s, err := Read(dir)
		if err != nil || s.Started != 55 || s.Dead() != tt.dead || s.Stopped() != tt.stopped || s.Exiting() != tt.exiting || s.Killed() != tt.killed {
			t.Errorf("%s: got %+v, %v", tt.text, s, err)
		}
	}
	s, err := Read("/proc/self")
	assert.True(t, err == nil && s.Started != 0 && !s.Dead() && !s.Exiting() && !s.Killed(), "this process: got", s, err)
	assert.OK(t, os.WriteFile(dir+"/stat", []byte("7 (a) S 1"), 0o600))
	assert.True(t, assert.ErrOf(Read(dir)) != nil, "half a file was read")
}
