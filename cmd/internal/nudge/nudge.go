// Package nudge lets programs that watch a mount with inotify see changes that pulls bring.
//
// That takes a change through the mount (fs.Nudge), which the process that serves it
// must not make itself: a child does, from the first such file on. A caller that reports a file
// does not wait for it, and a child that hangs in the mount is killed.
//
//	n := nudge.New(program, mountpoint, log)
//	n.Serve(server)
//	n.Pulled("", "notes/a.txt")
//	defer n.Stop()
package nudge

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"

	"github.com/wsmount/wsmount/fs"
)

// ProcessName is the name, argv[0], of the child: see Run.
const ProcessName = "wsmount-nudge"

// most is how many files are reported to watchers at once. A pull that brings
// more is a new tree to a watcher, and each costs a request.
const most = 1024

// A Nudger reports to the watchers of one mount.
type Nudger struct {
	mountpoint string
	log        *slog.Logger

	mu      sync.Mutex // guards the fields below
	server  *fs.Server // nil: there is no mount, and so no watcher
	program string     // calls Run when it is started as ProcessName; "": no watcher is told
	queue   []string   // paths below the mount point
	missed  int        // files that found no place in it
	feeder  *feeder    // nil: there is no child
}

// feeder is the state of a child. Nudger.mu guards it.
type feeder struct {
	wake  chan struct{} // something is in the queue; closed when it is over
	done  chan struct{} // closed when the child has ended
	child *os.Process   // nil until it is started
	over  bool
}

// New makes a Nudger. program is one that calls Run when it is started as ProcessName; empty: no
// watcher is told.
func New(program, mountpoint string, log *slog.Logger) *Nudger {
	return &Nudger{program: program, mountpoint: mountpoint, log: log}
}

// Serve is called once there is a mount.
func (n *Nudger) Serve(s *fs.Server) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server = s
}

// Pulled reports a file below the part at a place. It does not wait.
func (n *Nudger) Pulled(at, file string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.program == "" || n.server == nil:
		return
	case len(n.queue) >= most:
		n.missed++
		return
	}
	n.queue = append(n.queue, path.Join(at, file))
	if n.feeder == nil {
		n.feeder = &feeder{wake: make(chan struct{}, 1), done: make(chan struct{})}
		go n.feed(n.feeder, n.program)
	}
	select {
	case n.feeder.wake <- struct{}{}:
	default:
	}
}

// feed starts a child and gives it the paths in the queue.
func (n *Nudger) feed(f *feeder, program string) {
	defer close(f.done)
	cmd := exec.Command(program, n.mountpoint) // end kills it
	cmd.Args[0], cmd.Env, cmd.Dir = ProcessName, []string{}, "/"
	in, err := cmd.StdinPipe()
	if err == nil {
		err = n.start(f, cmd)
	}
	if err != nil {
		n.end(f)
		if !errors.Is(err, os.ErrClosed) {
			n.log.Warn("programs that watch files are not told of pulls", "err", err)
			n.mu.Lock()
			n.program = ""
			n.mu.Unlock()
		}
		return
	}
	for range f.wake {
		for _, file := range n.take() {
			if _, err := io.WriteString(in, file+"\x00"); err != nil {
				n.end(f)
				break
			}
		}
	}
	_ = cmd.Wait()
}

// start starts the child, unless it is too late for that.
func (n *Nudger) start(f *feeder, cmd *exec.Cmd) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f.over {
		return os.ErrClosed
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	f.child = cmd.Process
	n.server.Nudger(f.child.Pid)
	return nil
}

// take empties the queue.
func (n *Nudger) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.missed > 0 {
		n.log.Info("programs that watch files were not told of all that a pull brought", "files", n.missed)
	}
	queue := n.queue
	n.queue, n.missed = nil, 0
	return queue
}

// end empties the queue, and kills the child: it may wait for the
// mount.
func (n *Nudger) end(f *feeder) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f.child != nil {
		_ = f.child.Kill()
		n.server.Nudger(0) // another process gets its number only after that
	}
	if !f.over {
		close(f.wake)
	}
	f.over = true
	if n.feeder == f {
		n.feeder, n.queue = nil, nil
	}
}

// Stop ends the child, so that it does not keep the mount busy. It is called
// before each try to unmount; the next pull after it starts another.
func (n *Nudger) Stop() {
	n.mu.Lock()
	f := n.feeder
	n.mu.Unlock()
	if f != nil {
		n.end(f)
		<-f.done
	}
}

// Run is the child: it reads paths that end with a NUL, and touches the files
// of a mount that they name. It ends with its input.
func Run(mountpoint string, in io.Reader) error {
	r := bufio.NewReader(in)
	for {
		file, err := r.ReadString(0)
		if err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		// One that is gone again needs no watcher.
		_ = fs.Nudge(mountpoint, strings.TrimSuffix(file, "\x00"))
	}
}
