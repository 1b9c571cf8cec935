package main

import (
	"flag"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/sandbox"
	"github.com/wsmount/wsmount/integration/assert"
)

// A person sits at either end of a command that has a terminal there, and is not
// interrupted unless the workspace says when.
func TestTimeLimitOfFiles(t *testing.T) {
	tty := assert.Of(os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)).OK(t)
	defer tty.Close()
	file := assert.Of(os.Open(os.DevNull)).OK(t)
	defer file.Close()
	c := cli.NewContext(cli.NewApp(), flag.NewFlagSet("", flag.ContinueOnError), nil)
	for _, tt := range []struct {
		name    string
		in, out *os.File
		want    time.Duration
	}{
		{"bash", tty, tty, 0},
		{"bash | tee log", tty, file, 0},
		{"echo x | vim -", file, tty, 0},
		{"a program's", file, file, defaultTimeout},
		{"a service's", nil, nil, defaultTimeout},
	} {
		p := &execPlan{spec: sandbox.Spec{Stdin: tt.in, Stdout: tt.out}}
		err := p.limits(c, 0, 0, 0)
		assert.True(t, err == nil && p.spec.Limits.Time == tt.want, tt.name, p.spec.Limits.Time, tt.want, err)
	}
	for _, terminal := range []bool{false, true} {
		assert.Equal(t, timeLimit(terminal, 90_000), 90*time.Second, "as the workspace declares")
	}
}
