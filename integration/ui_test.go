package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/providers"
)

// A shownMount is `wsmount ui` on a mount.
type shownMount struct {
	t       *testing.T
	cmd     *exec.Cmd
	address string // that lets one browser in
	root    string // of the pages, without a slash
}

// showUI starts it. It ends with the test, if not before.
func showUI(t *testing.T, w *harness.World, dir string, flags ...string) *shownMount {
	t.Helper()
	cmd := w.Command(context.Background(), harness.Binary(), append([]string{"ui", dir, "--json"}, flags...)...)
	out := assert.Of(cmd.StdoutPipe()).OK(t)
	assert.OK(t, cmd.Start(), "start")
	var said struct{ URL, Workspace string }
	assert.OK(t, json.NewDecoder(out).Decode(&said), "what it prints")
	root, _, _ := strings.Cut(said.URL, "/open")
	s := &shownMount{t, cmd, said.URL, root}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			s.end()
		}
	})
	return s
}

// end is Ctrl-C.
func (s *shownMount) end() {
	s.t.Helper()
	assert.OK(s.t, s.cmd.Process.Signal(syscall.SIGINT))
	assert.OK(s.t, s.cmd.Wait(), "the end of wsmount ui")
}

// A visit is a browser that was let in.
type visit struct {
	*shownMount
	http.Client
}

func (s *shownMount) visit() *visit {
	s.t.Helper()
	v := &visit{s, http.Client{Jar: assert.Of(cookiejar.New(nil)).OK(s.t)}}
	assert.Equal(s.t, assert.Of(v.Get(s.address)).OK(s.t).StatusCode, http.StatusOK, "the address")
	return v
}

// sees wants words in a page.
func (v *visit) sees(path string, words ...string) string {
	v.t.Helper()
	resp := assert.Of(v.Get(v.root + path)).OK(v.t)
	defer resp.Body.Close()
	body := html.UnescapeString(string(assert.Of(io.ReadAll(resp.Body)).OK(v.t)))
	for _, word := range words {
		assert.Contains(v.t, body, word, path)
	}
	return body
}

// sends sends a form, and wants words in the page that answers.
func (v *visit) sends(path string, form url.Values, words ...string) {
	v.t.Helper()
	req := assert.Of(http.NewRequestWithContext(v.t.Context(), "POST", v.root+path, strings.NewReader(form.Encode()))).OK(v.t)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", v.root)
	resp := assert.Of(v.Do(req)).OK(v.t)
	defer resp.Body.Close()
	body := html.UnescapeString(string(assert.Of(io.ReadAll(resp.Body)).OK(v.t)))
	for _, word := range words {
		assert.Contains(v.t, body, word, path)
	}
}

// A page in a browser shows what the commands tell, and does what they do, through all that
// may become of the mount.
func TestUI(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	c := storedBy(t, w, "shown", "mode: pull-push, pull: {on: turn-start}, commit: {on: per-turn}, push: {on: per-commit}, conflict: {policy: manual}")
	m := w.Mount("@acme/shown")
	write := func(text string) { assert.OK(t, os.WriteFile(m.Dir+"/f<b>", []byte(text), 0o644)) }
	for _, turn := range []string{"7", "8"} {
		w.MustRun("event", m.Dir, "turn-start", "--var", "turnId="+turn)
		write("in turn " + turn + "\n")
		w.MustRun("event", m.Dir, "turn-end")
	}
	s := showUI(t, w, m.Dir)
	assert.Equal(t, assert.Of(http.Get(s.root)).OK(t).StatusCode, http.StatusForbidden, "without the address")
	v := s.visit()
	v.sees("/", "@acme/shown", m.Dir, "last push")
	v.sees("/changes", "Turn 8", "Turn 7", "f<b>")
	v.sees("/diff?turn=8", "-in turn 7", "+in turn 8")

	stream := assert.Of(v.Get(s.root + "/live?seen=older")).OK(t)
	defer stream.Body.Close()
	heard := bufio.NewScanner(stream.Body)
	hears := func() (word string) {
		t.Helper()
		for word == "" && heard.Scan() {
			word, _ = strings.CutPrefix(heard.Text(), "data: ")
			if word == heard.Text() {
				word = ""
			}
		}
		assert.True(t, word != "", "the stream has ended", heard.Err())
		return word
	}
	before := hears()

	v.sees("/restore?path=f%3Cb%3E&turn=7", "Would be restored", "turn 7")
	v.sends("/restore", url.Values{"path": {"f<b>"}, "turn": {"7"}}, "restored f<b>")
	checkContent(t, m.Dir+"/f<b>", "in turn 7\n")
	assert.True(t, hears() != before, "the page hears nothing of the restore")
	v.sends("/commit", url.Values{"message": {"back to turn 7"}}, "1 file committed")

	assert.Is(t, c.Tamper(t.Context(), providers.MustLocator("f<b>"), []byte("theirs\n")), nil, "tamper")
	write("ours\n")
	assert.Equal(t, w.Run("event", m.Dir, "turn-end").Code, 8, "turn-end with a conflict")
	v.sees("/conflicts", "f<b>", "modified locally and on the remote")
	body := v.sees("/conflict?path=f%3Cb%3E", "-theirs", "+ours", "in turn 7")
	version := regexp.MustCompile(`name="version" value="([^"]*)"`).FindStringSubmatch(body)
	assert.Must(t, version != nil, body)
	v.sends("/resolve", url.Values{"path": {"f<b>"}, "version": {version[1]}, "keep": {"theirs"}}, "took the remote version")
	checkContent(t, m.Dir+"/f<b>", "theirs\n")
	v.sees("/conflicts", "No conflicts.")
	v.sends("/resolve", url.Values{"path": {"f<b>"}, "version": {version[1]}, "keep": {"theirs"}}, "has no conflict any more")

	m.Stop()
	v.sees("/changes", "no workspace is mounted at "+m.Dir)
	m = w.Mount("@acme/shown", "--read-only")
	for code, args := range map[int][]string{2: {"ui", m.Dir + "/f<b>"}, 4: {"ui", w.Dir}} {
		r := w.Run(args...)
		assert.True(t, r.Code == code && r.Out == "", args, "exit", r.Code, r.Out, r.Err)
	}
	other := showUI(t, w, m.Dir, "--no-open").visit()
	other.sees("/queue", "read-only", "Nothing can be changed")
	other.sends("/restore", url.Values{"path": {"f<b>"}, "turn": {"7"}}, "is read-only")
	checkContent(t, m.Dir+"/f<b>", "theirs\n")
	m.Hang()
	other.sees("/", "is stopped")
	m.Kill()
	other.sees("/", "has ended without unmounting")
	m.Start()
	other.sees("/", "@acme/shown", "read-only")
	s.end()
	assert.True(t, assert.ErrOf(v.Get(s.root)) != nil, "the page is served on")
}
