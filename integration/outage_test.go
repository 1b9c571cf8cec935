package integration

import (
	"bytes"
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
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/internal/badlink"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/s3server"
)

const (
	// outagePatience is how long the mounts of these tests wait for a bucket.
	outagePatience = 2 * time.Second
	// soon bounds what waits for no bucket. A listing that cannot come may take
	// a second until the first time it does not.
	soon = 1900 * time.Millisecond
	// atMost bounds what waits.
	atMost = outagePatience + 6*time.Second
	// recovery is how long all may take to be well again.
	recovery = 30 * time.Second
)

// An outage is a way in which a bucket is not there for a while.
type outage struct {
	name   string
	breaks func(o *outageStage)
	mends  func(o *outageStage) // nil: the link is mended
	says   string               // what status says of it
}

var outages = []outage{
	{"connections refused", func(o *outageStage) { o.link.Down() }, nil, "connection refused"},
	{"connections reset", func(o *outageStage) { o.link.Break(badlink.Reset) }, nil, ""},
	{"bytes stop", func(o *outageStage) { o.link.Break(badlink.Stall) }, nil, ""},
	{"half answers", func(o *outageStage) { o.link.Break(badlink.HalfAnswer) }, nil, ""},
	{"half requests", func(o *outageStage) { o.link.Break(badlink.HalfRequest) }, nil, ""},
	{"slow down", func(o *outageStage) {
		o.link.Say(badlink.Answer{Status: http.StatusServiceUnavailable, Code: "SlowDown"})
	}, nil, "storage is not available"},
	{"clocks differ", func(o *outageStage) {
		o.link.Say(badlink.Answer{Status: http.StatusForbidden, Code: "RequestTimeTooSkewed"})
	}, nil, "the clock of this machine and the service's differ"},
	{"another secret key", func(o *outageStage) {
		o.check(o.s.Restart(context.Background(), "another-secret-key"))
	}, func(o *outageStage) { o.login(o.s.SecretKey) }, "SignatureDoesNotMatch"},
	{"no bucket", func(o *outageStage) { o.check(o.s.HideBucket()) }, func(o *outageStage) { o.check(o.s.ShowBucket()) }, "NoSuchBucket"},
}

// Whatever keeps a bucket from answering, no program waits for it for longer than
// it was told, or after it was killed; what it wrote stays here; and when the
// bucket is back, everything arrives there without anybody's doing.
func TestOutages(t *testing.T) {
	t.Parallel() // it is waiting, mostly
	half := len(outages) / 2
	for i, some := range [][]outage{outages[:half], outages[half:]} {
		t.Run(fmt.Sprint("mounts ", i+1), func(t *testing.T) {
			t.Parallel()
			s := s3server.Start(t, s3server.Default())
			link := badlink.Start(t, s.Endpoint)
			stage := newOutageStage(t, s, link, "http://"+link.Addr, len(some))
			for n, o := range some {
				t.Run(o.name, func(t *testing.T) { stage.run(t, n, o) })
			}
		})
	}
}

// A name that is resolved no more is an outage as any other.
func TestOutageOfNames(t *testing.T) {
	t.Parallel()
	if !harness.Private(t) {
		return
	}
	s := s3server.Start(t, s3server.Default())
	link := badlink.Start(t, s.Endpoint)
	dir := t.TempDir()
	hosts := func(text string) { checkErr(t, "write hosts", os.WriteFile(dir+"/hosts", []byte(text), 0o644), nil) }
	const known = "127.0.0.1 localhost bucket.example.test\n"
	hosts(known)
	checkErr(t, "write resolv.conf", os.WriteFile(dir+"/resolv.conf", []byte("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"), 0o644), nil)
	for _, name := range []string{"hosts", "resolv.conf"} {
		checkErr(t, "bind "+name, syscall.Mount(dir+"/"+name, "/etc/"+name, "", syscall.MS_BIND, ""), nil)
	}
	_, port, _ := net.SplitHostPort(link.Addr)
	newOutageStage(t, s, link, "http://bucket.example.test:"+port, 1).run(t, 0, outage{
		name: "no such host",
		breaks: func(*outageStage) {
			hosts("127.0.0.1 localhost\n")
			time.Sleep(5 * time.Second) // Go believes the file for so long
			link.Down()                 // the connections that there are
			link.Mend()
		},
		mends: func(*outageStage) { hosts(known) },
		says:  "bucket.example.test",
	})
}

// An outageStage is two mounts of one bucket through a link: one whose closes
// wait for the bucket, and one in write-back.
type outageStage struct {
	*bucketStage
	link              *badlink.Link
	canonical, behind *harness.Mount

	n string // the number of the outage, which all names have that belong to it
}

// far is content that is not here when the outage comes: too large to be fetched
// for who reads what lies beside it.
var far = bytes.Repeat([]byte("far away\n"), 130_000)

// newOutageStage makes it for a number of outages.
func newOutageStage(t *testing.T, s *s3server.Server, link *badlink.Link, endpoint string, outages int) *outageStage {
	o := &outageStage{bucketStage: newBucketStage(t, s, endpoint), link: link}
	o.workspace("behind", endpoint, "region: us-east-1, bucket: "+s.Bucket+", prefix: team/behind")
	for _, prefix := range []string{"team/ws/", "team/behind/"} {
		for i := range outages {
			o.check(s.Put(t.Context(), prefix+"far"+itoa(i), far, nil))
			o.check(s.Put(t.Context(), prefix+"old"+itoa(i)+"/name", []byte("named\n"), nil))
		}
	}
	o.canonical = o.w.Mount("@acme/bucket", "--patience", outagePatience.String())
	o.behind = o.w.Mount("@acme/behind", "--write-back", "--patience", outagePatience.String())
	for _, m := range o.both() {
		o.check(os.WriteFile(m.Dir+"/here", []byte("here\n"), 0o644))
		o.check(exec.CommandContext(t.Context(), "ls", "-lR", m.Dir).Run())
		o.clean(m, "before")
	}
	return o
}

func (o *outageStage) both() []*harness.Mount { return []*harness.Mount{o.canonical, o.behind} }

func (o *outageStage) check(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *outageStage) run(t *testing.T, n int, out outage) {
	o.t, o.n = t, itoa(n)
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
		o.clean(m, "after")
		content, err := os.ReadFile(m.Dir + "/far" + o.n)
		if err != nil || !bytes.Equal(content, far) {
			o.t.Errorf("what was far: %d bytes, %v", len(content), err)
		}
	}
	o.arrived("team/ws/")
	o.arrived("team/behind/")
}

// suffer uses a mount while there is no bucket.
func (o *outageStage) suffer(m *harness.Mount, writeBack bool) {
	o.killed(m)
	o.within(soon, "reading what is here", func() error {
		content, err := os.ReadFile(m.Dir + "/here")
		if err == nil && string(content) != "here\n" {
			err = fmt.Errorf("got %q", content)
		}
		return err
	})
	o.names(m)
	limit, want := soon, error(nil)
	if !writeBack {
		limit, want = atMost, syscall.EIO
	}
	o.within(limit, "writing", func() error {
		if err := os.WriteFile(m.Dir+"/new"+o.n, []byte("new\n"), 0o644); !errors.Is(err, want) {
			return fmt.Errorf("got %w, want %w", err, want)
		}
		return nil
	})
	content, err := os.ReadFile(m.Dir + "/new" + o.n)
	if err != nil || string(content) != "new\n" {
		o.t.Errorf("what was written: %q, %v", content, err)
	}
	o.within(atMost, "reading what is far", func() error {
		if _, err := os.ReadFile(m.Dir + "/far" + o.n); !errors.Is(err, syscall.EIO) {
			return fmt.Errorf("got %w, want EIO", err)
		}
		return nil
	})
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
		o.within(soon, step.what, step.do)
	}
}

// killed reads what cannot come, and is killed meanwhile.
func (o *outageStage) killed(m *harness.Mount) {
	cmd := exec.Command("cat", m.Dir+"/far"+o.n)
	if err := cmd.Start(); err != nil {
		o.t.Error(err)
		return
	}
	time.Sleep(outagePatience / 10) // it waits, or has failed
	o.within(soon, "the end of a program that was killed", func() error {
		_ = cmd.Process.Kill()
		if cmd.Wait() == nil {
			return errors.New("it had read everything")
		}
		return nil
	})
}

func (o *outageStage) within(limit time.Duration, what string, do func() error) {
	began := time.Now()
	err := do()
	if took := time.Since(began); err != nil || took > limit {
		o.t.Errorf("%s: %v after %v of %v", what, err, took, limit)
	}
}

// explained wants status to say what is wrong, at any time.
func (o *outageStage) explained(m *harness.Mount, says string) {
	o.t.Helper()
	time.Sleep(time.Second) // names are believed for so long
	_, err := os.ReadDir(m.Dir)
	o.check(err)
	p := m.Status().Parts[0]
	c := p.WorkingCopy
	if p.Unsaved.Files == 0 || c.LastError == "" || !strings.Contains(c.LastError, says) || c.UnreachableSeconds == 0 || !c.Stale {
		o.t.Errorf("status says %+v of %+v, want %q", c, p.Unsaved, says)
	}
	if p.HeldBack > 0 || p.Conflicts > 0 {
		o.t.Errorf("%d changes are held back, and %d conflicts", p.HeldBack, p.Conflicts)
	}
}

// clean waits until status has nothing to tell.
func (o *outageStage) clean(m *harness.Mount, when string) {
	o.t.Helper()
	end := time.Now().Add(recovery)
	for {
		_, err := os.ReadDir(m.Dir)
		p := m.Status().Parts[0]
		c := p.WorkingCopy
		if err == nil && p.Unsaved.Names == 0 && p.HeldBack == 0 && c.Retrying == 0 && c.LastError == "" && c.UnreachableSeconds == 0 && !c.Stale && len(c.Halted) == 0 {
			return
		}
		if time.Now().After(end) {
			o.t.Fatalf("%s: not clean within %v: %+v, %+v, %d held back, ls: %v", when, recovery, p.Unsaved, c, p.HeldBack, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// arrived looks into the bucket itself.
func (o *outageStage) arrived(prefix string) {
	o.t.Helper()
	keys, err := o.s.Keys(context.Background(), prefix)
	o.check(err)
	for _, key := range []string{"made" + o.n + "/", "moved" + o.n + "/name", "far" + o.n} {
		if !slices.Contains(keys, key) {
			o.t.Errorf("the bucket has no %s: %q", key, keys)
		}
	}
	for _, key := range keys {
		if strings.HasPrefix(key, "old"+o.n) {
			o.t.Errorf("the bucket still has %s", key)
		}
	}
	for key, want := range map[string]string{"new" + o.n: "new\n", "moved" + o.n + "/name": "named\n", "link" + o.n: "here", "here": "here\n"} {
		if got, err := o.s.Get(context.Background(), prefix+key); err != nil || string(got) != want {
			o.t.Errorf("the bucket's %s is %q, want %q, %v", key, got, want, err)
		}
	}
}
