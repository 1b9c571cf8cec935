package screen

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// terminal is one of a width, as a program has it for its output.
func terminal(t *testing.T, columns uint16) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	assert.OK(t, err)
	t.Cleanup(func() { master.Close() })
	assert.OK(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	assert.OK(t, err)
	f, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	assert.OK(t, err)
	t.Cleanup(func() { f.Close() })
	assert.OK(t, unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	return f
}

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		columns       uint16 // 0: it does not say
		noColour, tty string
		width         int
		colours       bool
	}{
		{132, "", "xterm", 132, true},
		{40, "", "xterm", 40, true},
		{0, "", "xterm", 80, true},
		{3, "", "xterm", 20, true},
		{80, "1", "xterm", 80, false},
		{80, "", "dumb", 80, false},
		{80, "", "", 80, false},
	} {
		t.Setenv("NO_COLOR", tt.noColour)
		t.Setenv("TERM", tt.tty)
		s := Of(terminal(t, tt.columns))
		assert.Equal(t, fmt.Sprint(s.Width, s.Colours), fmt.Sprint(tt.width, tt.colours), tt)
		assert.Equal(t, Of(s).Width, tt.width, "a screen is its own")
	}
	t.Setenv("COLUMNS", "30") // of the terminal beside which there is a pipe
	r, w, err := os.Pipe()
	assert.OK(t, err)
	defer r.Close()
	defer w.Close()
	s := Of(w)
	assert.Equal(t, fmt.Sprint(s.Width, s.Colours), "0 false", "a pipe")
}

// What is watched is printed where it has changed, and to its end.
func TestWatch(t *testing.T) {
	t.Setenv("TERM", "xterm")
	for width, want := range map[int]string{0: "one\n\ntwo\n", 80: "\x1b[H\x1b[2Jone\n\x1b[H\x1b[2Jtwo\n"} {
		var out bytes.Buffer
		texts, end := []string{"one\n", "one\n", "two\n"}, errors.New("the end")
		err := Screen{Writer: &out, Width: width}.Watch(t.Context(), time.Millisecond, func(w io.Writer) (err error) {
			fmt.Fprint(w, texts[0])
			if texts = texts[1:]; len(texts) == 0 {
				err = end
			}
			return err
		})
		assert.Is(t, err, end)
		assert.Equal(t, out.String(), want)
	}
}

// The same is printed on each screen, and nothing of it is cut off.
func TestLayout(t *testing.T) {
	path := "/srv/" + strings.Repeat("long/", 12) + "a"
	print := func(s Screen) {
		s.Table([]string{"WORKSPACE", "STATE"}, [][]string{{"@acme/ops", path}, {"@acme/x", s.Paint(Good, "ready")}})
		row := s.Rows(2)
		row("note", "one two three four five six seven eight nine ten")
		row("unavailable", "")
		s.Wrapped("", 1, "@acme/ops at "+path)
	}
	for _, tt := range []struct {
		s    Screen
		want string
	}{
		{Screen{}, "WORKSPACE  STATE\n@acme/ops  " + path + "\n@acme/x    ready\n" +
			"  note        one two three four five six seven eight nine ten\n@acme/ops at " + path + "\n"},
		{Screen{Width: 40}, "@acme/ops\n  " + path + "\n@acme/x  ready\n" +
			"  note        one two three four five\n              six seven eight nine ten\n@acme/ops at\n " + path + "\n"},
		{Screen{Width: 100, Colours: true}, "\x1b[1mWORKSPACE  STATE\x1b[0m\n@acme/ops  " + path + "\n@acme/x    \x1b[32mready\x1b[0m\n" +
			"  \x1b[33mnote\x1b[0m        one two three four five six seven eight nine ten\n@acme/ops at " + path + "\n"},
	} {
		var out bytes.Buffer
		tt.s.Writer = &out
		print(tt.s)
		assert.Equal(t, out.String(), tt.want, tt.s.Width)
	}
	diff := "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z"
	assert.Equal(t, Screen{}.Diff(diff), diff)
	assert.Equal(t, Screen{Colours: true}.Diff(diff), "\x1b[1m--- a\x1b[0m\n\x1b[1m+++ b\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-x\x1b[0m\n\x1b[32m+y\x1b[0m\n z")
}
