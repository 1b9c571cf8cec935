package integration

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/providers/memory"
)

// An automounter does what automount(8) and an automount unit of systemd do, in the
// process group of the test: the kernel has it mount what other process groups look
// for, and unmount it again, and lets nobody else pass meanwhile.
type automounter struct {
	p     *packageStage
	dir   string
	spec  map[string]string // what is mounted at each name
	flags []string          // of mount(8)
	root  *os.File          // of dir, for its ioctls
	pipe  *os.File          // of packets
	ended chan struct{}
}

// What linux/auto_fs.h has.
const (
	autofsReady       = 0x9360
	autofsFail        = 0x9361
	autofsExpireMulti = 0x40049366
	autofsExpireNow   = 1 // AUTOFS_EXP_IMMEDIATE

	autofsMissing = 3
	autofsExpire  = 4
)

// automountLimit is how long mount(8) and umount(8) may take: without it, who waits
// for one that hangs waits for ever.
const automountLimit = 20 * time.Second

// autofsPacket is struct autofs_v5_packet.
type autofsPacket struct {
	Version, Type          int32
	Token, Dev             uint32
	Ino                    uint64
	UID, GID, PID, TGID, N uint32
	Name                   [256]byte
	_                      uint32
}

func (p *packageStage) automounter(dir string, spec map[string]string, flags ...string) *automounter {
	p.t.Helper()
	r, w, err := os.Pipe()
	checkErr(p.t, "pipe", err, nil)
	a := &automounter{p: p, dir: dir, spec: spec, flags: flags, pipe: r, ended: make(chan struct{})}
	options := fmt.Sprintf("fd=%d,pgrp=%d,minproto=5,maxproto=5,indirect", w.Fd(), unix.Getpgrp())
	checkErr(p.t, "mount autofs", unix.Mount("automount", dir, "autofs", 0, options), nil)
	w.Close() // the kernel has it
	a.root, err = os.Open(dir)
	checkErr(p.t, "open", err, nil)
	go a.serve()
	return a
}

func (a *automounter) serve() {
	defer close(a.ended)
	buf := make([]byte, 4096)
	for {
		n, err := a.pipe.Read(buf)
		if err != nil {
			return
		}
		var packet autofsPacket
		if err := binary.Read(bytes.NewReader(buf[:n]), binary.NativeEndian, &packet); err != nil {
			a.p.t.Errorf("packet of %d bytes: %v", n, err)
			return
		}
		answer := uint(autofsReady)
		if err := a.act(packet.Type, string(packet.Name[:packet.N])); err != nil {
			a.p.t.Errorf("packet %d: %v", packet.Type, err)
			answer = autofsFail
		}
		if err := unix.IoctlSetInt(int(a.root.Fd()), answer, int(packet.Token)); err != nil {
			a.p.t.Errorf("answer: %v", err)
		}
	}
}

func (a *automounter) act(kind int32, name string) error {
	at := filepath.Join(a.dir, name)
	words := []string{"umount", at}
	if kind == autofsMissing {
		if err := os.Mkdir(at, 0o755); err != nil && !os.IsExist(err) {
			return err
		}
		words = append(append([]string{"mount", "-t", "wsmount"}, a.flags...), a.spec[name], at)
	}
	ctx, cancel := context.WithTimeout(a.p.t.Context(), automountLimit)
	defer cancel()
	cmd := a.p.w.Command(ctx, words[0], words[1:]...)
	cmd.WaitDelay = time.Second // a daemon that hangs has its output, too
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w\n%s", words, err, out)
	}
	return nil
}

// expire has everything unmounted that nobody uses.
func (a *automounter) expire() {
	a.p.t.Helper()
	for n := 0; ; n++ {
		err := unix.IoctlSetPointerInt(int(a.root.Fd()), autofsExpireMulti, autofsExpireNow)
		if err == unix.EAGAIN && n > 0 {
			return
		}
		checkErr(a.p.t, "expire", err, nil)
	}
}

func (a *automounter) stop() {
	a.root.Close()
	checkErr(a.p.t, "umount autofs", unix.Unmount(a.dir, 0), nil)
	<-a.ended // the kernel closes its end of the pipe
	a.pipe.Close()
}

// others runs a program as it is everywhere else: in a process group of its own.
func (a *automounter) others(says string, args ...string) {
	a.p.t.Helper()
	ctx, cancel := context.WithTimeout(a.p.t.Context(), 2*automountLimit)
	defer cancel()
	cmd := a.p.w.Command(ctx, args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	a.p.ends(cmd, says, 0)
}

// An automounter mounts when somebody looks, unmounts when nobody does, and mounts
// again. As automount(8) calls mount(8), umount(8) does not know the program; as
// systemd does, it waits until everything is sent.
func TestAutomounter(t *testing.T) {
	harness.RequireTools(t, "mount", "findmnt")
	harness.Require(t, "autofs", strings.Contains(readFile(t, "/proc/filesystems"), "\tautofs\n"))
	if !harness.Private(t) {
		return
	}
	w := harness.New(t, harness.Options{})
	p := &packageStage{t: t, w: w, dir: w.Mkdir("over", 0o755)}
	p.overlay("/usr/sbin", "/run")
	for _, name := range []string{"mount.wsmount", "umount.wsmount"} {
		checkErr(t, "link", os.Symlink(harness.Binary(), "/usr/sbin/"+name), nil)
	}
	w.Workspace("@acme/notes", "watch")
	w.MustRun("registry", "add", w.Path("ws-acme-notes"))
	s := p.w.Service("-repository")
	p.w.Write("config/wsmount/config.yaml", "allow_paths: [ "+filepath.Dir(s.Socket)+" ]\n", 0o600)
	sync := "storage: {inline: {provider: memory, config: {clone: a, branch: main, socket: " + s.Socket + "}, " +
		"sync: {mode: pull-push, pull: {on: turn-start}, commit: {on: write, batch_window_ms: 600000}, push: {on: per-commit}}}}\n"
	p.w.Mkdir("ws-auto", 0o755)
	p.w.Write("ws-auto/WORKSPACE.md", harness.Manifest("@acme/auto", sync), 0o644)
	p.w.MustRun("registry", "add", p.w.Path("ws-auto"))
	c, err := memory.DialControl(p.t.Context(), "unix", s.Socket)
	checkErr(p.t, "dial", err, nil)
	for name, flags := range map[string][]string{"autofs": {"-n"}, "systemd": nil} {
		a := p.automounter(p.w.Mkdir("by-"+name, 0o755), map[string]string{"notes": "@acme/notes", "auto": "@acme/auto"}, flags...)
		notes, auto := filepath.Join(a.dir, "notes"), filepath.Join(a.dir, "auto")
		a.others("@acme/notes", "cat", notes+"/WORKSPACE.md")
		p.shows(notes, "@acme/notes fuse.wsmount rw,")
		a.others("", "sh", "-c", "echo "+name+" >"+auto+"/"+name)
		p.shows(auto, "@acme/auto fuse.wsmount rw,")
		a.expire()
		p.shows(notes, "")
		p.shows(auto, "")
		harness.Eventually(p.t, 10*time.Second, "what was written is sent, and the daemons end", func() bool {
			all, err := c.Dump(p.t.Context())
			return err == nil && strings.Contains(strings.Join(all, "\n"), `"`+name+`"`) && p.ended(notes) && p.ended(auto)
		})
		a.others(name+"\n", "cat", auto+"/"+name)
		a.others("", harness.Binary(), "umount", auto)
		a.stop()
	}
}
