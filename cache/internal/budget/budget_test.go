package budget

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

func take(t *testing.T, b *Budget, n int64) (release func()) {
	t.Helper()
	release = assert.Of(b.Take(t.Context(), n)).OK(t)
	return release
}

// queued waits until so many wait.
func queued(b *Budget, n int) {
	for b.Usage().Waiting != n {
	}
}

// Who waits is served in the order of coming, a small one behind a large one
// too: else those that come all the time would starve it.
func TestFirstComeFirstServed(t *testing.T) {
	b := New(100)
	first := take(t, b, 80)
	order := make(chan string, 2)
	next := make(chan func(), 2)
	go func() {
		release, _ := b.Take(t.Context(), 90)
		order <- "large"
		next <- release
	}()
	queued(b, 1)
	go func() {
		release, _ := b.Take(t.Context(), 20)
		order <- "small"
		next <- release
	}()
	queued(b, 2)
	first()
	assert.Equal(t, <-order, "large", "was served first")
	(<-next)()
	<-order
	(<-next)()
	assert.Equal(t, b.Usage(), Usage{Limit: 100}, "left behind")
}

func TestPieceLargerThanTheLimit(t *testing.T) {
	b := New(100)
	take(t, b, 1000)()
	assert.Equal(t, b.Usage().Used, 0, "left behind")
}

// Who leaves makes way for those behind, who may need less.
func TestWaiterLeaves(t *testing.T) {
	b := New(100)
	release := take(t, b, 60)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := b.Take(ctx, 50)
		left <- err
	}()
	queued(b, 1)
	served := make(chan func())
	go func() {
		release, _ := b.Take(t.Context(), 40)
		served <- release
	}()
	queued(b, 2)
	cancel()
	assert.Is(t, <-left, context.Canceled)
	(<-served)()
}

// What is fetched in advance leaves a quarter to others, and is shared by its
// readers.
func TestAhead(t *testing.T) {
	b := New(100)
	release, ok := b.TryTake("a", 75)
	assert.Must(t, ok, "three quarters are refused")
	if _, ok := b.TryTake("a", 1); ok {
		t.Error("more than three quarters are given")
	}
	if _, ok := b.TryTake("b", 1); ok {
		t.Error("more than three quarters are given to two")
	}
	take(t, b, 25)()
	release()
	half, ok := b.TryTake("a", 37)
	assert.Must(t, ok, "nothing is free again")
	if _, ok := b.TryTake("b", 38); ok {
		t.Error("the second reader got more than its share")
	}
	other, ok := b.TryTake("b", 37)
	assert.True(t, ok, "the second reader got nothing")
	half()
	other()
	u := b.Usage()
	assert.True(t, u == (Usage{Limit: 100}) && len(b.readers) == 0, "left behind:", u)
}

func TestNothingAheadOfWhoWaits(t *testing.T) {
	b := New(100)
	first := take(t, b, 50)
	served := make(chan func())
	go func() {
		release, _ := b.Take(t.Context(), 90)
		served <- release
	}()
	queued(b, 1)
	_, ok := b.TryTake("a", 10)
	assert.False(t, ok, "something in advance while somebody waits")
	first()
	(<-served)()
}

func TestMemory(t *testing.T) {
	const machine = "MemTotal:       1000 kB\nMemFree: 5 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"no group", map[string]string{"proc/meminfo": machine}, 1000 << 10},
		{"version 2", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "4096\n"}, 4096},
		{"no limit", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 1000 << 10},
		{"a group above", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "8192\n",
			"sys/fs/cgroup/a/memory.max": "4096\n"}, 4096},
		{"a container", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/not/seen\n", "sys/fs/cgroup/memory.max": "4096\n"}, 4096},
		{"version 1", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "4:cpu,memory:/a\n1:name=x:/a\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4096\n"}, 4096},
		{"more than there is", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 1000 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for path, text := range c.files {
				path = filepath.Join(root, path)
				assert.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
				assert.OK(t, os.WriteFile(path, []byte(text), 0o644))
			}
			assert.Equal(t, memory(root), c.want)
		})
	}
}

func TestLimitNobodyChose(t *testing.T) {
	got := New(0).Usage().Limit
	assert.True(t, got >= Least && got <= Most, got, "bytes")
}
