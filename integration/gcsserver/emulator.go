package gcsserver

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/port"
	"github.com/wsmount/wsmount/integration/internal/tied"
	"github.com/wsmount/wsmount/integration/tier"
)

// Emulator is fake-gcs-server, another's reading of the service. The program is
// bin/fake-gcs-server, which takes minutes to build and so is of `make soak` only. A test
// is skipped where it was not built, and fails where WSMOUNT_REQUIRE asks for all.
type Emulator struct{ Endpoint, Bucket string }

// StartEmulator runs it with one empty bucket until the test ends.
func StartEmulator(t testing.TB) *Emulator {
	t.Helper()
	binary := tier.RequireBuilt(t, "fake-gcs-server")
	held, err := port.Hold()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(held.Close)
	host, number, _ := net.SplitHostPort(held.Addr)
	s := &Emulator{Endpoint: "http://" + held.Addr, Bucket: "bucket"}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "-backend", "memory", "-scheme", "http", "-host", host, "-port", number, "-public-host", host)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = &output, &output, []string{"HOME=" + t.TempDir()}, t.TempDir()
	ended, why, err := tied.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	ctx, cancel := context.WithTimeout(t.Context(), assert.Hangs)
	defer cancel()
	for s.makeBucket(ctx) != nil {
		select {
		case <-ended:
			t.Fatalf("fake-gcs-server: %v\n%s", why(), output.String())
		case <-ctx.Done():
			t.Fatal("fake-gcs-server does not answer")
		case <-time.After(20 * time.Millisecond): // it does not say when it is ready
		}
	}
	return s
}

func (s *Emulator) makeBucket(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Endpoint+"/storage/v1/b", strings.NewReader(`{"name":"`+s.Bucket+`"}`))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}
