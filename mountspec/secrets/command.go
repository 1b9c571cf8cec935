package secrets

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/wsmount/wsmount/mountspec/host/program"
)

const maxOutput = 64 << 10

// Command is a secret on the standard output of a program, which package program runs: at
// most 64 KiB.
type Command struct {
	Argv   []string
	Format Format
	// Lookup reads the environment that the program started with.
	Lookup func(name string) (string, bool)
	// Timeout is the time limit. Zero: 10 seconds.
	Timeout time.Duration
}

// Kind returns "command".
func (c Command) Kind() string { return "command" }

// String names the program only: arguments may be telling.
func (c Command) String() string {
	if len(c.Argv) == 0 {
		return "command"
	}
	return "command " + c.Argv[0]
}

func (c Command) program() program.Program {
	return program.Program{Argv: c.Argv, Lookup: c.Lookup, Timeout: c.Timeout}
}

// Files are the files that decide what the program prints.
func (c Command) Files() []string { return c.program().Files() }

// Fetch runs the program.
func (c Command) Fetch(ctx context.Context) (Secret, error) {
	var out bounded
	if err := c.program().Run(ctx, nil, &out); err != nil {
		return Secret{}, err
	}
	return decode(out.b.Bytes(), c.Format)
}

// bounded keeps the first bytes of an output and refuses more.
type bounded struct{ b bytes.Buffer }

func (w *bounded) Write(p []byte) (int, error) {
	if w.b.Len()+len(p) > maxOutput {
		return 0, fmt.Errorf("printed more than %d bytes", maxOutput)
	}
	return w.b.Write(p)
}
