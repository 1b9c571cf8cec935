// Package s3server runs real servers that speak S3, for tests and the benchmark.
//
// It knows how each is started on a port of its own with a bucket in it, and
// nothing of who uses it. It lies outside internal, because the tests of the
// provider use it as well as those of the program.
//
//	server := s3server.Start(t, s3server.Default())
//	// server.Endpoint, server.Bucket, server.AccessKey, server.SecretKey
//
// The programs are bin/versitygw, which `make test` builds, and bin/minio, which takes
// minutes to build and so is of `make soak` only. A test whose server was not built is
// skipped, and fails where WSMOUNT_REQUIRE asks for all.
package s3server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/port"
	"github.com/wsmount/wsmount/integration/internal/tied"
)

// A Kind is a program.
type Kind string

// The kinds. MinIO honours conditions of PUT and of completion alone;
// Versitygw keeps its objects as files of a directory.
const (
	MinIO     Kind = "minio"
	Versitygw Kind = "versitygw"
)

// A Server is a running one.
type Server struct {
	Endpoint, Bucket     string
	Region               string
	AccessKey, SecretKey string

	kind     Kind
	binary   string
	port     *port.Held // across Restart, too
	data     string     // where it keeps what it has
	versions string     // where it keeps noncurrent versions; "": it has none

	cmd    *exec.Cmd
	output bytes.Buffer
	ended  <-chan struct{} // closed when the program has ended
	why    func() error    // what it ended with

	mu     sync.Mutex // guards what follows
	client *s3.Client // signs with the secret
	signs  string
}

const startTime = assert.Hangs

// Launch runs binary, a server of that kind, which keeps what it has below data,
// with one empty bucket. It returns when the server answers.
func Launch(ctx context.Context, kind Kind, binary, data string) (*Server, error) {
	return launch(ctx, kind, binary, data, func(*Server) {})
}

func launch(ctx context.Context, kind Kind, binary, data string, change func(*Server)) (*Server, error) {
	held, err := port.Hold()
	if err != nil {
		return nil, err
	}
	s := &Server{Endpoint: "http://" + held.Addr, Bucket: "bucket", Region: "us-east-1", AccessKey: "wsmount-test", SecretKey: "wsmount-test-secret",
		kind: kind, binary: binary, port: held, data: data}
	change(s)
	// In both a bucket is a directory.
	if err := os.MkdirAll(filepath.Join(data, s.Bucket), 0o755); err != nil {
		return nil, err
	}
	return s, s.start(ctx)
}

// Restart ends the server and starts it again where it was, with what it has.
// From then on it wants another secret key.
func (s *Server) Restart(ctx context.Context, secretKey string) error {
	s.Stop()
	s.SecretKey = secretKey
	return s.start(ctx)
}

// Kind is which program it is.
func (s *Server) Kind() Kind { return s.kind }

// HideBucket takes the bucket away, as if it had been deleted, until ShowBucket.
func (s *Server) HideBucket() error { return os.Rename(filepath.Join(s.data, s.Bucket), s.hidden()) }

// ShowBucket brings the bucket back with all that was in it.
func (s *Server) ShowBucket() error { return os.Rename(s.hidden(), filepath.Join(s.data, s.Bucket)) }

func (s *Server) hidden() string { return filepath.Clean(s.data) + "-hidden" }

// start runs the program and returns when it answers.
func (s *Server) start(ctx context.Context) error {
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), s.binary, s.arguments()...)
	s.cmd.Env = []string{
		"HOME=" + s.data, "PATH=/usr/bin:/bin", "MINIO_ROOT_USER=" + s.AccessKey, "MINIO_ROOT_PASSWORD=" + s.SecretKey, "MINIO_BROWSER=off",
		"MINIO_UPDATE=off", "ROOT_ACCESS_KEY=" + s.AccessKey, "ROOT_SECRET_KEY=" + s.SecretKey,
	}
	if err := s.run(); err != nil {
		return err
	}
	if err := s.wait(ctx); err != nil {
		s.Stop()
		return err
	}
	return nil
}

func (s *Server) arguments() []string {
	switch {
	case s.kind == MinIO:
		return []string{"server", s.data, "--address", s.port.Addr, "--quiet"}
	case s.versions != "":
		return []string{"--port", s.port.Addr, "--quiet", "posix", "--versioning-dir", s.versions, s.data}
	}
	return []string{"--port", s.port.Addr, "--region", s.Region, "--quiet", "posix", s.data}
}

// run starts the program in a process group of its own, so that Ctrl-C is for
// whoever uses it.
func (s *Server) run() (err error) {
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.ended, s.why, err = tied.Start(s.cmd, syscall.SIGKILL)
	return err
}

// Stop ends the server. Nothing it has is worth keeping.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// wait returns when the server answers.
func (s *Server) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		err := answers(ctx, s.Endpoint)
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("%s ended: %w\n%s", s.cmd.Path, s.why(), s.output.String())
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", s.cmd.Path, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// answers asks without credentials: a refusal is an answer, an excuse is none.
func answers(ctx context.Context, endpoint string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("status %s", answer.Status)
	}
	return nil
}
