package integration

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/badlink"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/s3server"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// outagePatience is how long the mounts of these tests wait for a bucket.
const outagePatience = 2 * time.Second

// servedFor is less than the minute for which content is served that the bucket said was the
// latest.
const servedFor = 50 * time.Second

// An outage is a way in which a bucket is not there for a while.
type outage struct {
	name   string
	breaks func(o *outageStage)
	mends  func(o *outageStage) // nil: the link is mended
	says   string               // what status says of it
	// variant says that a store that is not there is the same to the mount as in another
	// of them: the provider's tests tell that each is, and make soak that all of it works.
	variant bool
	s3      bool // it is one of S3 servers alone
}

var outages = []outage{
	{name: "connections refused", breaks: func(o *outageStage) { o.link.Down() }, says: "connection refused"},
	{name: "connections reset", breaks: func(o *outageStage) { o.link.Break(badlink.Reset) }, variant: true},
	{name: "bytes stop", breaks: func(o *outageStage) { o.link.Break(badlink.Stall) }},
	{name: "half answers", breaks: func(o *outageStage) { o.link.Break(badlink.HalfAnswer) }, variant: true},
	{name: "half requests", breaks: func(o *outageStage) { o.link.Break(badlink.HalfRequest) }, variant: true},
	{name: "slow down", breaks: func(o *outageStage) {
		o.link.Say(badlink.Answer{Status: http.StatusServiceUnavailable, Code: "SlowDown"})
	}, says: "storage is not available", s3: true},
	{name: "clocks differ", breaks: func(o *outageStage) {
		o.link.Say(badlink.Answer{Status: http.StatusForbidden, Code: "RequestTimeTooSkewed"})
	}, says: "the clock of this machine and the service's differ", s3: true},
	{name: "another secret key", breaks: func(o *outageStage) {
		o.check(o.s.Restart(context.Background(), "another-secret-key"))
	}, mends: func(o *outageStage) { o.login(o.s.SecretKey) }, says: "SignatureDoesNotMatch", s3: true},
	{name: "no bucket", breaks: func(o *outageStage) { o.check(o.s.HideBucket()) }, mends: func(o *outageStage) { o.check(o.s.ShowBucket()) }, says: "NoSuchBucket", s3: true},
}

// Whatever keeps a bucket from answering, no program waits for it for ever, or after it
// was killed; what it wrote stays here; and when the
// bucket is back, everything arrives there without anybody's doing.
func TestOutages(t *testing.T) {
	t.Parallel() // it is waiting, mostly
	all := slices.DeleteFunc(slices.Clone(outages), func(o outage) bool { return o.variant && !tier.Soak })
	for some := range slices.Chunk(all, 2) {
		t.Run(some[0].name+" and others", func(t *testing.T) {
			t.Parallel()
			s := s3server.Start(t, s3server.Default())
			o := newOutageStage(t, harness.S3(s), badlink.Start(t, s.Endpoint), "", len(some))
			o.s = s
			o.runAll(t, some)
		})
	}
	all = slices.DeleteFunc(slices.Clone(all), func(o outage) bool { return o.s3 }) // the chunks are parts of the other
	for name, start := range others {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			newOutageStage(t, b, badlink.Start(t, b.Endpoint), "", len(all)).runAll(t, all)
		})
	}
}

// A name that is resolved no more is an outage as any other.
func TestOutageOfNames(t *testing.T) {
	t.Parallel()
	if !testrun.PrivateNetwork(t) { // where nobody else is a name server
		return
	}
	s := s3server.Start(t, s3server.Default())
	link := badlink.Start(t, s.Endpoint)
	names := serveNames(t)
	_, port, _ := net.SplitHostPort(link.Addr)
	newOutageStage(t, harness.S3(s), link, "http://bucket.example.test:"+port, 1).run(t, 0, outage{
		name: "no such host",
		breaks: func(*outageStage) {
			names.gone.Store(true)
			link.Down() // connections that there are need no name
		},
		mends: func(*outageStage) { names.gone.Store(false) },
		says:  "lookup bucket.example.test",
	})
}

// nameServer says of each name that it is this machine, or that there is none: at once, where
// a file of names is believed for a while.
type nameServer struct {
	conn net.PacketConn
	gone atomic.Bool
}

// serveNames has this process, and those that it starts, ask a name server of the test. The
// port is the only one that a resolver asks at.
func serveNames(t *testing.T) *nameServer {
	const addr = "127.0.0.1"
	conn := assert.Of(new(net.ListenConfig).ListenPacket(t.Context(), "udp", addr+":53")).OK(t)
	t.Cleanup(func() { conn.Close() })
	file := t.TempDir() + "/resolv.conf"
	assert.OK(t, os.WriteFile(file, []byte("nameserver "+addr+"\n"), 0o644))
	assert.OK(t, syscall.Mount(file, "/etc/resolv.conf", "", syscall.MS_BIND, ""))
	s := &nameServer{conn: conn}
	go s.serve()
	return s
}

func (s *nameServer) serve() {
	asked := make([]byte, 512)
	for {
		n, from, err := s.conn.ReadFrom(asked)
		if err != nil {
			return
		}
		if said := s.answer(asked[:n]); said != nil {
			_, _ = s.conn.WriteTo(said, from) // who hears nothing asks again
		}
	}
}

// answer is that to a message of one question (RFC 1035, section 4); nil: it is none.
func (s *nameServer) answer(asked []byte) []byte {
	const header, afterName, noSuchName = 12, 5, 3
	if len(asked) < header {
		return nil
	}
	name := bytes.IndexByte(asked[header:], 0)
	if name < 0 || len(asked) < header+name+afterName {
		return nil
	}
	end := header + name + afterName
	said := slices.Concat(asked[:2], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, asked[header:end])
	switch isA := asked[end-3] == 1; {
	case s.gone.Load():
		said[3] |= noSuchName
	case isA:
		said[7] = 1                                                                   // answer, which is
		said = append(said, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1) // of that name, for no time, four bytes
	}
	return said
}

// An outageStage is two mounts of one bucket through a link: one whose closes
// wait for the bucket, and one in write-back.
type outageStage struct {
	*bucketStage
	link              *badlink.Link
	canonical, behind *harness.Mount

	n     string    // the number of the outage, which all names have that belong to it
	known time.Time // the bucket has said since then what is in it
}

// far is content that is not here when the outage comes: too large to be fetched
// for who reads what lies beside it.
var far = bytes.Repeat([]byte("far away\n"), 130_000)

// newOutageStage makes it for a number of outages. The link is at an endpoint, if not at its
// address.
func newOutageStage(t *testing.T, b harness.Bucket, link *badlink.Link, endpoint string, outages int) *outageStage {
	endpoint = cmp.Or(endpoint, "http://"+link.Addr)
	o := &outageStage{bucketStage: newStageOf(t, b, endpoint), link: link}
	o.workspace("behind", endpoint, "team/behind")
	for _, prefix := range []string{"team/ws/", "team/behind/"} {
		for i := range outages {
			o.check(b.Put(t.Context(), prefix+"far"+itoa(i), far, nil))
			o.check(b.Put(t.Context(), prefix+"old"+itoa(i)+"/name", []byte("named\n"), nil))
		}
	}
	o.canonical = o.w.Mount("@acme/bucket", "--patience", outagePatience.String())
	o.behind = o.w.Mount("@acme/behind", "--write-back", "--patience", outagePatience.String())
	for _, m := range o.both() {
		if err := os.WriteFile(m.Dir+"/here", []byte("here\n"), 0o644); !errors.Is(err, syscall.EIO) { // if the machine is too slow for the patience it is sent later
			o.check(err)
		}
		harness.Eventually(t, "all is listed", func() bool { // a listing that stands still for half of the patience ends, too
			return exec.CommandContext(t.Context(), "ls", "-lR", m.Dir).Run() == nil
		})
		o.clean(m)
	}
	return o
}

func (o *outageStage) both() []*harness.Mount { return []*harness.Mount{o.canonical, o.behind} }

func (o *outageStage) check(err error) {
	o.t.Helper()
	assert.OK(o.t, err)
}

func (o *outageStage) runAll(t *testing.T, all []outage) {
	for n, out := range all {
		t.Run(out.name, func(t *testing.T) { o.run(t, n, out) })
	}
}

func (o *outageStage) run(t *testing.T, n int, out outage) {
	o.t, o.n, o.known = t, itoa(n), time.Now()
	for _, m := range o.both() {
		o.clean(m)
	}
	out.breaks(o)
	var wg sync.WaitGroup
	for _, m := range o.both() {
		wg.Go(func() { o.suffer(m, m == o.behind) })
	}
	wg.Wait()
	for _, m := range o.both() {
		o.explained(m, out.says)
	}
	if out.mends != nil {
		out.mends(o)
	}
	o.link.Mend()
	for _, m := range o.both() {
		o.clean(m)
		harness.Eventually(t, "what was far is read", func() bool {
			content, err := os.ReadFile(m.Dir + "/far" + o.n)
			return err == nil && bytes.Equal(content, far)
		})
	}
	o.arrived("team/ws/")
	o.arrived("team/behind/")
}

// suffer uses a mount while there is no bucket.
func (o *outageStage) suffer(m *harness.Mount, writeBack bool) {
	var wg sync.WaitGroup // what waits does so side by side
	defer wg.Wait()
	wg.Go(func() {
		o.killed(m)
		o.ends("reading what is far", func() error {
			if _, err := os.ReadFile(m.Dir + "/far" + o.n); !errors.Is(err, syscall.EIO) {
				return fmt.Errorf("got %w, want EIO", err)
			}
			return nil
		})
	})
	o.ends("reading what is here", func() error {
		content, err := os.ReadFile(m.Dir + "/here")
		if errors.Is(err, syscall.EIO) && time.Since(o.known) > servedFor {
			return nil // the machine is too slow for it
		}
		if err == nil && string(content) != "here\n" {
			err = fmt.Errorf("got %q", content)
		}
		return err
	})
	o.names(m)
	want := error(nil)
	if !writeBack {
		want = syscall.EIO
	}
	o.ends("writing", func() error {
		if err := os.WriteFile(m.Dir+"/new"+o.n, []byte("new\n"), 0o644); !errors.Is(err, want) {
			return fmt.Errorf("got %w, want %w", err, want)
		}
		return nil
	})
	content, err := os.ReadFile(m.Dir + "/new" + o.n)
	assert.True(o.t, err == nil && string(content) == "new\n", "what was written:", content, err)
}

// names changes names, which waits for nobody.
func (o *outageStage) names(m *harness.Mount) {
	at := func(name string) string { return filepath.Join(m.Dir, name+o.n) }
	mode := 0o700 | fs.FileMode(o.n[0]&7)
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"ls", func() error { _, err := os.ReadDir(m.Dir); return err }},
		{"stat", func() error { _, err := os.Stat(at("far")); return err }},
		{"mkdir", func() error { return os.Mkdir(at("made"), 0o755) }},
		{"rename", func() error { return os.Rename(at("old"), at("moved")) }},
		{"symlink", func() error { return os.Symlink("here", at("link")) }},
		{"chmod", func() error { return os.Chmod(m.Dir+"/here", mode) }},
	} {
		o.ends(step.what, step.do)
	}
}

// killed reads what cannot come, and is killed meanwhile.
func (o *outageStage) killed(m *harness.Mount) {
	cmd := exec.Command("cat", m.Dir+"/far"+o.n)
	if err := cmd.Start(); err != nil {
		o.t.Error(err)
		return
	}
	assert.True(o.t, assert.Await(func() bool { // until it waits, or has an error already
		return harness.IsIn(cmd.Process.Pid, syscall.SYS_OPENAT, syscall.SYS_READ, -1)
	}), "a program reads what is far")
	o.ends("the end of a program that was killed", func() error {
		_ = cmd.Process.Kill()
		if cmd.Wait() == nil {
			return errors.New("it had read everything")
		}
		return nil
	})
}

// ends wants something not to wait for the end of the outage, which does not come
// meanwhile, and to do well.
func (o *outageStage) ends(what string, do func() error) {
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	select {
	case err := <-ended:
		assert.Is(o.t, err, nil, what)
	case <-time.After(harness.Hangs):
		o.t.Errorf("%s waits for the bucket", what)
	}
}

// explained wants status to say what is wrong, once somebody looks.
func (o *outageStage) explained(m *harness.Mount, says string) {
	o.t.Helper()
	var p any
	defer func() {
		if o.t.Failed() {
			o.t.Logf("status says %+v, want %q", p, says)
		}
	}()
	harness.Eventually(o.t, "status says what is wrong", func() bool {
		o.check(assert.ErrOf(os.ReadDir(m.Dir)))
		s := m.Status().Parts[0]
		c := s.WorkingCopy
		p = []any{s.Unsaved, *c}
		return s.Unsaved.Files > 0 && c.LastError != "" && strings.Contains(c.LastError, says) && c.UnreachableSeconds > 0 && c.Stale
	})
	assert.Message(o.t, m.Status().Parts[0].WorkingCopy.LastError, "status")
	assert.Message(o.t, string(assert.Of(os.ReadFile(m.Dir+"/.wsmount/errors.log")).OK(o.t)), "errors.log")
	if p := m.Status().Parts[0]; p.HeldBack > 0 || p.Conflicts > 0 {
		o.t.Errorf("%d changes are held back, and %d conflicts", p.HeldBack, p.Conflicts)
	}
}

// clean waits until status has nothing to tell.
func (o *outageStage) clean(m *harness.Mount) {
	o.t.Helper()
	harness.Eventually(o.t, "status has nothing to tell", func() bool {
		_, err := os.ReadDir(m.Dir)
		p := m.Status().Parts[0]
		c := p.WorkingCopy
		return err == nil && p.Unsaved.Names == 0 && p.HeldBack == 0 && c.Retrying == 0 && c.LastError == "" && c.UnreachableSeconds == 0 && !c.Stale && len(c.Halted) == 0
	})
}

// arrived looks into the bucket itself.
func (o *outageStage) arrived(prefix string) {
	o.t.Helper()
	objects, err := o.bucket.ETags(context.Background(), prefix)
	o.check(err)
	for _, key := range []string{"made" + o.n + "/", "moved" + o.n + "/name", "far" + o.n} {
		assert.True(o.t, objects[key] != "", "the bucket has no", key, objects)
	}
	for key := range objects {
		assert.False(o.t, strings.HasPrefix(key, "old"+o.n), "the bucket still has", key)
	}
	for key, want := range map[string]string{"new" + o.n: "new\n", "moved" + o.n + "/name": "named\n", "link" + o.n: "here", "here": "here\n"} {
		got, err := o.bucket.Look(context.Background(), prefix+key)
		assert.True(o.t, err == nil && string(got.Content) == want, "the bucket's", key, "is", got.Content, "want", want, err)
	}
}
