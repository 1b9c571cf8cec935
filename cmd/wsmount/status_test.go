package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/integration/assert"
)

// Names may be longer than a terminal is wide, and nothing of them is lost.
func TestHeadingOfLongNames(t *testing.T) {
	var out bytes.Buffer
	s := control.Status{Workspace: "@" + strings.Repeat("o", 60) + "/" + strings.Repeat("s", 60), Mountpoint: "/" + strings.Repeat("mnt/", 40)}
	printStatus(&out, s, time.Now())
	checkWidth(t, out.String())
	head, _, _ := strings.Cut(out.String(), "\n  state")
	assert.Equal(t, strings.Join(strings.Fields(head), ""), s.Workspace+"at"+s.Mountpoint, "got", head)
}

// What a program is refused without a word must be seen here.
func TestStatusTellsOfOtherMounts(t *testing.T) {
	var out bytes.Buffer
	printStatus(&out, control.Status{Parts: []control.Part{{At: "/", OtherMounts: []string{"notes/bind"}, NotEntered: 3}}}, time.Now())
	assert.Contains(t, strings.Join(strings.Fields(out.String()), " "), "mounted at notes/bind; 3 lookups refused")
}
