package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
)

// Names may be longer than a terminal is wide, and nothing of them is lost.
func TestHeadingOfLongNames(t *testing.T) {
	var out bytes.Buffer
	s := control.Status{Workspace: "@" + strings.Repeat("o", 60) + "/" + strings.Repeat("s", 60), Mountpoint: "/" + strings.Repeat("mnt/", 40)}
	printStatus(&out, s, time.Now())
	checkWidth(t, out.String())
	head, _, _ := strings.Cut(out.String(), "\n  state")
	if got := strings.Join(strings.Fields(head), ""); got != s.Workspace+"at"+s.Mountpoint {
		t.Errorf("got\n%s", head)
	}
}

// What a program is refused without a word must be seen here.
func TestStatusTellsOfOtherMounts(t *testing.T) {
	var out bytes.Buffer
	printStatus(&out, control.Status{Parts: []control.Part{{At: "/", OtherMounts: []string{"notes/bind"}, NotEntered: 3}}}, time.Now())
	if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, "mounted at notes/bind; 3 lookups refused") {
		t.Errorf("got %s", got)
	}
}
