// Package s3server runs real servers that speak S3, for tests.
//
// It knows how each is started on a port of its own with a bucket in it, and
// nothing of who uses it. It lies outside internal, because the tests of the
// provider use it as well as those of the program.
//
//	server := s3server.Start(t, s3server.MinIO)
//	// server.Endpoint, server.Bucket, server.AccessKey, server.SecretKey
//
// The programs are bin/minio and bin/versitygw, which `make test` builds. A
// test whose server was not built is skipped, and fails where WSMOUNT_REQUIRE
// asks for all.
package s3server

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Kind is a program.
type Kind string

// The kinds. MinIO honours conditions of PUT and of completion alone;
// Versitygw keeps its objects as files of a directory.
const (
	MinIO     Kind = "minio"
	Versitygw Kind = "versitygw"
)

// Kinds are all.
func Kinds() []Kind { return []Kind{MinIO, Versitygw} }

// A Server is a running one.
type Server struct {
	Endpoint, Bucket     string
	AccessKey, SecretKey string
}

const startTime = 30 * time.Second

// Start runs a server with one empty bucket until the test ends.
func Start(t testing.TB, kind Kind) *Server {
	t.Helper()
	binary := find(t, kind)
	address := freeAddress(t)
	data := t.TempDir()
	s := &Server{Endpoint: "http://" + address, Bucket: "bucket", AccessKey: "wsmount-test", SecretKey: "wsmount-test-secret"}
	// In both a bucket is a directory.
	if err := os.MkdirAll(filepath.Join(data, s.Bucket), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), binary, arguments(kind, address, data)...)
	cmd.Env = []string{
		"HOME=" + data, "PATH=/usr/bin:/bin", "MINIO_ROOT_USER=" + s.AccessKey, "MINIO_ROOT_PASSWORD=" + s.SecretKey, "MINIO_BROWSER=off",
		"MINIO_UPDATE=off", "ROOT_ACCESS_KEY=" + s.AccessKey, "ROOT_SECRET_KEY=" + s.SecretKey,
	}
	run(t, cmd, s.Endpoint)
	return s
}

func arguments(kind Kind, address, data string) []string {
	if kind == MinIO {
		return []string{"server", data, "--address", address, "--quiet"}
	}
	return []string{"--port", address, "--quiet", "posix", data}
}

// find is the program, below the directory of the go.mod that we are in.
func find(t testing.TB, kind Kind) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	binary := filepath.Join(filepath.Dir(here), "..", "..", "bin", string(kind))
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	if strings.Contains(os.Getenv("WSMOUNT_REQUIRE"), "all") {
		t.Fatalf("bin/%s is missing, and $WSMOUNT_REQUIRE asks for it", kind)
	}
	t.Skipf("bin/%s is missing; `make bin/%s` builds it", kind, kind)
	return ""
}

// freeAddress is one that nobody has at this moment.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// run starts the program, waits until it answers, and ends it with the test.
func run(t testing.TB, cmd *exec.Cmd, endpoint string) {
	t.Helper()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // also when the test is killed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended shows in its output
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // nothing it has is worth keeping
		<-ended
	})
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	for {
		err := answers(ctx, endpoint)
		if err == nil {
			return
		}
		select {
		case <-ended:
			t.Fatalf("%s ended: %v\n%s", cmd.Path, cmd.ProcessState, output.String())
		case <-ctx.Done():
			t.Fatalf("%s does not answer: %v", cmd.Path, err)
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
