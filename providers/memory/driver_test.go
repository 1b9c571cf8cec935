package memory_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryserver"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

func TestDriver(t *testing.T) {
	d := memory.Driver()
	p := assert.Of(d.Open(t.Context(), providers.Settings{})).OK(t)
	missing := d.Promises.Missing(p.Capabilities())
	assert.True(t, missing == nil, "the provider does what the driver does not promise", missing)
	for _, c := range []struct {
		name   string
		config map[string]string
	}{
		{"unknown key", map[string]string{"size": "1"}},
		{"clone without socket", map[string]string{"clone": "a"}},
		{"branch without clone", map[string]string{"socket": "/s", "branch": "b"}},
		{"relative socket", map[string]string{"socket": "s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := d.Open(t.Context(), providers.Settings{Config: c.config})
			assert.True(t, errors.Is(err, providers.ErrInvalid) && p == nil, p, err)
		})
	}
}

// openAt opens what is served at a socket the way a mount does.
func openAt(t *testing.T, socket string) (providers.Provider, error) {
	t.Helper()
	config := map[string]string{"socket": socket}
	p, err := memory.Driver().Open(t.Context(), providers.Settings{Config: config})
	if err == nil {
		t.Cleanup(func() { p.Close() })
	}
	return p, err
}

// What others could listen to, or offer, is refused.
func TestDriverForeignSocket(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(socket string) error
		want    error
	}{
		{"open to others", func(s string) error { return os.Chmod(s, 0o660) }, providers.ErrPermission},
		{"readable by others", func(s string) error { return os.Chmod(s, 0o604) }, providers.ErrPermission},
		{"another user's", func(s string) error { return os.Chown(s, 12345, 12345) }, providers.ErrPermission},
		{"a file", func(s string) error { return errors.Join(os.Remove(s), os.WriteFile(s, nil, 0o600)) }, providers.ErrPermission},
		{"a link", func(s string) error { return errors.Join(os.Rename(s, s+"2"), os.Symlink(s+"2", s)) }, providers.ErrPermission},
		{"nothing", os.Remove, providers.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			socket := serve(t, memory.New(memory.Options{}))
			err := c.prepare(socket)
			tier.Require(t, "root", !errors.Is(err, unix.EPERM)) // only root gives a socket away
			assert.OK(t, err)
			p, err := openAt(t, socket)
			assert.True(t, errors.Is(err, c.want) && p == nil, "got", p, err, "want", c.want)
		})
	}
}

// An open provider looks again with each connection.
func TestDriverReplacedSocket(t *testing.T) {
	address := filepath.Join(t.TempDir(), "s")
	listen := func(mode os.FileMode) *memoryserver.Server {
		l := assert.Of(net.Listen("unix", address)).OK(t)
		os.Chmod(address, mode)
		return memoryserver.Serve(l, memory.New(memory.Options{}))
	}
	first := listen(0o600)
	p := assert.Of(openAt(t, address)).OK(t)
	first.Close()
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), providers.Locator{})), providers.ErrUnavailable, "without a server")
	second := listen(0o666)
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), providers.Locator{})), providers.ErrPermission, "with a server that is open to all")
	second.Close()
	third := listen(0o600)
	defer third.Close()
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), providers.Locator{})), nil, "with a server again")
}

// A socket that looks like ours, behind which another user's process listens.
func TestDriverForeignPeer(t *testing.T) {
	tier.RequireRoot(t)
	dir := t.TempDir()
	for up := dir; up != "/" && up != os.TempDir(); up = filepath.Dir(up) {
		os.Chmod(up, 0o777)
	}
	address := filepath.Join(dir, "s")
	listening := make(chan net.Listener)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine
		keep := ^uintptr(0)
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, 12345, keep)
		assert.True(t, errno == 0, errno)
		l, err := net.Listen("unix", address)
		assert.Is(t, err, nil)
		listening <- l
	}()
	l := <-listening
	if l == nil {
		return
	}
	s := memoryserver.Serve(l, memory.New(memory.Options{}))
	defer s.Close()
	assert.OK(t, errors.Join(os.Chown(address, 0, 0), os.Chmod(address, 0o600)))
	p, err := openAt(t, address)
	assert.True(t, errors.Is(err, providers.ErrPermission) && p == nil, "got", p, err)
}
