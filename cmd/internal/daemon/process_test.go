package daemon

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
)

func TestDropEnvironment(t *testing.T) {
	before := os.Environ()
	defer func() {
		os.Clearenv()
		for _, kv := range before {
			k, v, _ := strings.Cut(kv, "=")
			os.Setenv(k, v)
		}
	}()
	os.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	os.Setenv("NOTIFY_SOCKET", "@systemd")
	os.Setenv("PATH", "/usr/bin:bin::/mnt/ws/bin:/mnt/ws:/mnt/ws2/bin:.")
	dropEnvironment("/mnt/ws")
	want := map[string]string{"PATH": "/usr/bin:/mnt/ws2/bin", "NOTIFY_SOCKET": "@systemd"}
	assert.Equal(t, len(os.Environ()), len(want), "left")
	for k, v := range want {
		assert.Equal(t, os.Getenv(k), v, k)
	}
}

func TestMountError(t *testing.T) {
	e := exit.From(mountError(fs.ErrPermission, ""))
	if e.Code != exit.Failed || e.Advice == "" {
		t.Errorf("got %+v", e)
	}
}
