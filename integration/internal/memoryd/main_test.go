package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// start runs the service and returns when it is ready. end ends it by closing
// its input, and ended gives its error.
func start(t *testing.T, o options) (socket string, end func(), ended <-chan error) {
	t.Helper()
	o.socket = filepath.Join(t.TempDir(), "s")
	in, hold := io.Pipe()
	lines, out := io.Pipe()
	result := make(chan error, 1)
	go func() {
		result <- run(o, in, out)
		out.Close()
	}()
	line, _ := bufio.NewReader(lines).ReadString('\n')
	if line != "ready\n" {
		t.Fatalf("got %q, %v", line, <-result)
	}
	return o.socket, func() { hold.Close() }, result
}

func TestServes(t *testing.T) {
	socket, end, ended := start(t, options{without: "move,empty-dirs", noDigest: true})
	if fi, err := os.Stat(socket); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", fi, err)
	}
	p, err := memory.Dial(t.Context(), "unix", socket)
	assert.OK(t, err)
	if c := p.Capabilities(); c.EmptyDirs || c.Abilities.Has(providers.AbilityMove) || !c.Abilities.Has(providers.AbilityCopy) {
		t.Errorf("capabilities %+v", c)
	}
	info, err := p.Write(t.Context(), providers.MustLocator("a"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()})
	if err != nil || info.Digest != "" {
		t.Errorf("write: %+v, %v", info, err)
	}
	c, err := memory.DialControl(t.Context(), "unix", socket)
	assert.OK(t, err)
	if got, err := c.Dump(t.Context()); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], `"a" file 1 `) {
		t.Errorf("dump: %q, %v", got, err)
	}
	end()
	assert.Is(t, <-ended, nil)
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestServesRepository(t *testing.T) {
	socket, end, ended := start(t, options{repository: true})
	p, err := memory.DialClone(t.Context(), "unix", socket, "a", "main")
	assert.OK(t, err)
	if _, ok := providers.As[providers.Pusher](p); !ok {
		t.Errorf("capabilities %+v", p.Capabilities())
	}
	end()
	assert.Is(t, <-ended, nil)
}

// TestSignal: SIGTERM ends the service, with nothing left.
func TestSignal(t *testing.T) {
	socket, _, ended := start(t, options{})
	assert.OK(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	assert.Is(t, <-ended, nil)
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		name string
		o    options
		want string
	}{
		{"no socket", options{}, "-socket is needed"},
		{"unknown word", options{socket: "/nowhere/s", without: "copy,wings"}, `"wings" is not one of attr, `},
		{"no directory", options{socket: "/nowhere/s"}, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := run(c.o, strings.NewReader(""), io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestWords: each word takes away what it says, and nothing else does.
func TestWords(t *testing.T) {
	all, err := parseWithout(strings.Join(known(), ","))
	assert.OK(t, err)
	got := memory.New(memory.Options{Without: all}).Capabilities()
	want := memory.New(memory.Options{}).Capabilities()
	want = providers.Capabilities{Writable: true, StrictTree: true, AnyNames: true, Conditions: want.Conditions}
	assert.Equal(t, got, want)
	for _, word := range known() {
		less, err := parseWithout(word)
		full := memory.New(memory.Options{}).Capabilities()
		if err != nil || len(memory.New(memory.Options{Without: less}).Capabilities().Missing(full)) == 0 {
			t.Errorf("%s takes nothing away, %v", word, err)
		}
	}
}
