package process

import (
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

func TestDropEnvironment(t *testing.T) {
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		t.Setenv(k, v) // which sets it again at the end
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("NOTIFY_SOCKET", "@systemd")
	t.Setenv("PATH", "/usr/bin:bin::/mnt/ws/bin:/mnt/ws:/mnt/ws2/bin:.:/mnt/x/../ws/bin:/usr/../mnt/ws")
	lookup := Environment()
	DropEnvironment("/mnt/ws")
	want := map[string]string{"PATH": "/usr/bin:/mnt/ws2/bin", "NOTIFY_SOCKET": "@systemd"}
	assert.Equal(t, len(os.Environ()), len(want), "left")
	for k, v := range want {
		assert.Equal(t, os.Getenv(k), v, k)
	}
	secret, ok := lookup("AWS_SECRET_ACCESS_KEY")
	assert.True(t, ok && secret == "secret", "what was there is not to be seen afterwards:", secret)
}
