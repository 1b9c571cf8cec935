package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/state"
)

// The daemon's exit code is seen by nobody, so umount must pass on what it says
// at the end, and only what this daemon says.
func TestUmountPassesOnWhatIsNotSafe(t *testing.T) {
	for _, tt := range []struct {
		name, status string
		want         exit.Code
	}{
		{"all is safe", `{"pid": 7}`, exit.Done},
		{"not all is safe", `{"pid": 7, "notSafe": "two files"}`, exit.Unsafe},
		{"another daemon's word", `{"pid": 8, "notSafe": "two files"}`, exit.Done},
		{"no word", `{`, exit.Done},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &state.Record{Dir: t.TempDir(), PID: 7}
			if err := os.WriteFile(filepath.Join(r.Dir, "status.json"), []byte(tt.status), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := exit.From(orDone(lastWord(r))).Code; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
