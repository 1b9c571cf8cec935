package secrets

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

func lookup(env map[string]string) func(string) (string, bool) {
	return func(n string) (string, bool) { v, ok := env[n]; return v, ok }
}

func write(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	d := t.TempDir()
	assert.OK(t, os.Chmod(d, 0o700))
	p := filepath.Join(d, name)
	assert.OK(t, os.WriteFile(p, []byte(content), 0o600))
	assert.OK(t, os.Chmod(p, mode))
	return p
}

func reveal(t *testing.T, s Source, field string) (string, error) {
	t.Helper()
	got, err := s.Fetch(context.Background())
	if err != nil {
		assert.False(t, strings.Contains(err.Error(), hidden), "the error shows the value:", err)
		return "", err
	}
	v, ok := got.Field(field)
	assert.Must(t, ok, "no field", field, "among", got.Names())
	return v.Reveal(), nil
}

func TestFile(t *testing.T) {
	for _, c := range []struct {
		name, content string
		mode          os.FileMode
		format        Format
		field, want   string // want empty: refused
	}{
		{"value", hidden + "\n", 0o600, Text, Single, hidden},
		{"value with CRLF", hidden + "\r\n", 0o400, Text, Single, hidden},
		{"only one line end goes", "a\n\n", 0o600, Text, Single, "a\n"},
		{"others can read it", hidden, 0o644, Text, Single, ""},
		{"empty", "\n", 0o600, Text, Single, ""},
		{"too large", strings.Repeat("x", maxOutput+1), 0o600, Text, Single, ""},
		{"fields", `{"access_key_id":"A","secret_access_key":"` + hidden + `"}`, 0o600, JSON, "secret_access_key", hidden},
		{"AWS credential process", `{"Version":1,"AccessKeyId":"A","SecretAccessKey":"` + hidden + `","Expiration":"2026-11-20T12:00:00Z"}`, 0o600, JSON, "secret_access_key", hidden},
		{"not JSON", `{"a": ` + hidden, 0o600, JSON, "a", ""},
		{"nested", `{"a":{"b":"` + hidden + `"}}`, 0o600, JSON, "a", ""},
		{"no field", `{}`, 0o600, JSON, "a", ""},
		{"end that is no time", `{"a":"x","expires_at":"` + hidden + `"}`, 0o600, JSON, "a", ""},
	} {
		got, err := reveal(t, File{write(t, "s", c.content, c.mode), c.format}, c.field)
		assert.True(t, got == c.want && (err == nil) == (c.want != ""), c.name, got, c.want, err)
	}
	away := File{Path: filepath.Join(t.TempDir(), "away")}
	assert.Equal(t, assert.ErrOf(away.Fetch(context.Background())).Error(), "no such file or directory", "the path is in its name")
	s := assert.Of(File{write(t, "s", `{"a":"x","expiresAt":"2026-11-20T12:00:00Z"}`, 0o600), JSON}.Fetch(context.Background())).OK(t)
	assert.True(t, s.Expires.Equal(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)) && len(s.Names()) == 1, "end", s.Expires, s.Names())
}

func TestEnv(t *testing.T) {
	env := lookup(map[string]string{"A": hidden, "EMPTY": ""})
	assert.Of(reveal(t, Env{Name: "A", Lookup: env}, Single)).Equal(t, hidden)
	assert.Of(reveal(t, Env{Fields: map[string]string{"x": "A"}, Lookup: env}, "x")).Equal(t, hidden)
	for _, n := range []string{"EMPTY", "NONE"} {
		_, err := reveal(t, Env{Name: n, Lookup: env}, Single)
		assert.True(t, err != nil && strings.Contains(err.Error(), n), n, err)
	}
}

// The attacks: shell metacharacters in an argument, variables of the daemon
// in a child, a program that anybody can change or that a repository
// brings, one that never ends or never stops.
func TestCommand(t *testing.T) {
	script := func(body string, mode os.FileMode) string { return write(t, "cmd", "#!/bin/sh\n"+body+"\n", mode) }
	t.Setenv("WSMOUNT_TEST_LEAK", hidden)
	marker := filepath.Join(t.TempDir(), "marker")
	for _, c := range []struct {
		name    string
		argv    []string
		timeout time.Duration
		want    string // exact output, or empty: refused with wantErr
		wantErr string
	}{
		{name: "output", argv: []string{script("echo "+hidden, 0o700)}, want: hidden},
		{name: "arguments are not for a shell", argv: []string{"echo", "a; touch " + marker, "$(touch " + marker + ")", "`id`", "$HOME", "|cat"},
			want: "a; touch " + marker + " $(touch " + marker + ") `id` $HOME |cat"},
		{name: "clean environment", argv: []string{script(`echo "[$WSMOUNT_TEST_LEAK$LD_PRELOAD$AWS_ACCESS_KEY_ID]$HOME"`, 0o700)}, want: "[]/home/u"},
		{name: "directory", argv: []string{"pwd"}, want: "/"},
		{name: "no input", argv: []string{script("cat; echo end", 0o700)}, want: "end"},
		{name: "fails", argv: []string{script("echo "+hidden+"; echo "+hidden+" >&2; exit 3", 0o700)}, wantErr: "exit status 3"},
		{name: "no output", argv: []string{"true"}, wantErr: "empty"},
		{name: "too much output", argv: []string{"yes"}, wantErr: "more than"},
		{name: "never ends", argv: []string{"sleep", "1000"}, timeout: 50 * time.Millisecond, wantErr: "did not finish"},
		{name: "child outlives it", argv: []string{script("sleep 1000 & wait", 0o700)}, timeout: 50 * time.Millisecond, wantErr: "did not finish"},
		{name: "others can change it", argv: []string{script("echo x", 0o777)}, wantErr: "written by others"},
		{name: "relative to the working directory", argv: []string{"./cmd"}, wantErr: "relative"},
		{name: "below the working directory", argv: []string{"bin/cmd"}, wantErr: "relative"},
		{name: "unknown", argv: []string{"no-such-program-here"}, wantErr: "none of"},
		{name: "a shell's line as a name", argv: []string{"echo hi"}, wantErr: "none of"},
		{name: "empty", argv: []string{}, wantErr: "empty"},
	} {
		cmd := Command{Argv: c.argv, Timeout: c.timeout, Lookup: lookup(map[string]string{"HOME": "/home/u", "WSMOUNT_TEST_LEAK": "x", "AWS_ACCESS_KEY_ID": "y"})}
		got, err := reveal(t, cmd, Single)
		assert.False(t, c.wantErr == "" && (err != nil || got != c.want), c.name, got, c.want, err)
		assert.False(t, c.wantErr != "" && (err == nil || !strings.Contains(err.Error(), c.wantErr)), c.name, "got", got, err, "want an error with", c.wantErr)
		assert.True(t, assert.ErrOf(os.Stat(marker)) != nil, c.name, "an argument was run")
	}
}

// PATH of the daemon may name a directory in a workspace.
func TestCommandIgnoresPATH(t *testing.T) {
	p := write(t, "mypass", "#!/bin/sh\necho stolen\n", 0o700)
	t.Setenv("PATH", filepath.Dir(p)+":"+os.Getenv("PATH"))
	got, err := reveal(t, Command{Argv: []string{"mypass"}, Lookup: os.LookupEnv}, Single)
	assert.True(t, err != nil, "ran", p, got)
}

func TestCommandIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.True(t, assert.ErrOf((Command{Argv: []string{"sleep", "1000"}, Lookup: os.LookupEnv}).Fetch(ctx)) != nil, "a cancelled command answered")
}

func TestSourcesSayWhereNotWhat(t *testing.T) {
	for _, s := range []Source{
		Env{Fields: map[string]string{"b": "B", "a": "A"}}, File{Path: "/k"}, Command{Argv: []string{"pass", hidden}}, Command{},
	} {
		if s.String() == "" || !strings.HasPrefix(s.String(), s.Kind()) || strings.Contains(s.String(), hidden) {
			t.Errorf("%q of kind %q", s.String(), s.Kind())
		}
	}
}
