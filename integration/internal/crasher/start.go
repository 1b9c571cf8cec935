package crasher

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/integration/internal/tied"
)

// Options are what a client is told.
type Options struct {
	Dir   string // where it works
	Log   string // what it appends to
	Seed  uint64 // of its choices
	Files []File // what is in Dir when it starts
	Power bool   // ends at the first error
	Stop  int    // after so many operations it does nothing any more; 0: never
}

// A Client is a running client.
type Client struct {
	Options
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // what it says; closed when it ends
	ended <-chan struct{}
	read  int64 // of the log, by Acked
	acked int
}

// Start runs this binary as a client.
func Start(o Options) (*Client, error) {
	job, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	c := &Client{Options: o, cmd: exec.CommandContext(context.Background(), os.Args[0]), lines: make(chan string, 4)}
	c.cmd.Env = append(os.Environ(), env+"="+string(job))
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.cmd.Stdout = theirs
	c.ended, _, err = tied.Start(c.cmd, syscall.SIGKILL) // none works on in a mount whose test was killed
	theirs.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	go func() {
		defer close(c.lines)
		defer out.Close()
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	return c, nil
}

// Said waits for the next line of a client: "dead", or "failed" and why. It is
// empty when the client has ended or says nothing in time.
func (c *Client) Said(limit time.Duration) string {
	select {
	case line := <-c.lines:
		return line
	case <-time.After(limit):
		return ""
	}
}

// Go lets a client that said "dead" go on.
func (c *Client) Go(happened bool) error {
	word := undone
	if happened {
		word = done
	}
	_, err := io.WriteString(c.in, word+"\n")
	return err
}

// Kill ends a client.
func (c *Client) Kill() {
	c.in.Close()
	_ = c.cmd.Process.Kill()
	for range c.lines {
	}
	<-c.ended
}

// Acked counts the operations that a client was told are done.
func (c *Client) Acked() int {
	f, err := os.Open(c.Log)
	if err != nil {
		return 0
	}
	defer f.Close()
	b, _ := io.ReadAll(io.NewSectionReader(f, c.read, 1<<40))
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	c.read += int64(len(b))
	c.acked += bytes.Count(append([]byte("\n"), b...), []byte("\n"+acked+"\n"))
	return c.acked
}

// History reads a log: the operations, the deaths between them, and whether
// the last one was acknowledged.
func History(log string) (ops []Op, whole bool, err error) {
	b, err := os.ReadFile(log)
	if err != nil {
		return nil, false, err
	}
	whole = true
	for line := range strings.Lines(string(b)) {
		switch line {
		case acked + "\n":
		case done + "\n":
			ops = append(ops, Op{Do: "dead"})
		case undone + "\n":
			ops[len(ops)-1] = Op{Do: "dead"}
		default:
			var o Op
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				return nil, false, fmt.Errorf("%s: %w", log, err)
			}
			ops, whole = append(ops, o), false
			continue
		}
		whole = true
	}
	return ops, whole, nil
}

// Replay is the state after some operations.
func Replay(files []File, ops []Op) *Model {
	m := NewModel(files)
	for _, o := range ops {
		m.Apply(o)
	}
	return m
}
