//go:build soak

package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// A browser takes long to install and to begin: make test asks for the pages without one.

// A chromium is a headless one with one page open.
type chromium struct {
	t        *testing.T
	ctx      context.Context
	root     string
	pictures string // where they go; "": there are none

	mu     sync.Mutex // guards faults
	faults []string   // what the page complained of, or asked of others
}

// openChromium lets one in. $PICTURES is a directory for pictures of the pages.
func openChromium(t *testing.T, w *harness.World, s *shownMount) *chromium {
	t.Helper()
	tier.RequireTools(t, "chromium")
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(w.Mkdir("chromium", 0o700)), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	c := &chromium{t: t, root: s.root, pictures: os.Getenv("PICTURES")}
	allocated, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, closed := chromedp.NewContext(allocated, chromedp.WithListener(c.hear))
	t.Cleanup(closed)
	c.ctx = ctx
	c.do("begin", chromedp.Navigate("about:blank"))
	call(c, network.Enable, network.EnableParams{})
	call(c, cdplog.Enable, cdp.Empty{})
	c.do("let in", chromedp.Navigate(s.address), chromedp.WaitVisible(`//h1[text()="Overview"]`))
	return c
}

// hear keeps what the page complains of, or asks of others.
func (c *chromium) hear(e any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e := e.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, c.root+"/") && e.Request.URL != "about:blank" {
			c.faults = append(c.faults, "asked for "+e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		c.faults = append(c.faults, fmt.Sprintf("threw %+v", e.ExceptionDetails))
	case *cdplog.EventEntryAdded: // such as what the content security policy forbids
		if !strings.Contains(e.Entry.Text, "the server responded with a status of 404") { // of a mount that has ended
			c.faults = append(c.faults, "said "+e.Entry.Text)
		}
	}
}

func (c *chromium) heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.faults)
}

// call runs a command of the browser's protocol.
func call[P, R any](c *chromium, command cdp.Command[P, R], params P) {
	c.t.Helper()
	assert.OK(c.t, assert.ErrOf(chromedp.Call(c.ctx, command, params)), command.Method)
}

func (c *chromium) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	c.t.Helper()
	ctx := c.ctx
	if chromedp.FromContext(ctx).Target != nil { // else it would be the end of the browser
		var over context.CancelFunc
		ctx, over = context.WithTimeout(ctx, harness.Hangs)
		defer over()
	}
	err := chromedp.Do(ctx, actions...)
	if err != nil { // what a person would have before the eyes
		text, _ := chromedp.Run(c.ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
		c.t.Log(text, c.heard())
	}
	assert.OK(c.t, err, what)
}

// has waits for a text in the page.
func (c *chromium) has(text string) {
	c.t.Helper()
	c.do(text, chromedp.WaitVisible(fmt.Sprintf(`//main//*[text()[contains(., %q)]]`, text)))
}

// clicks what has a text.
func (c *chromium) clicks(text string) {
	c.t.Helper()
	c.do("click "+text, chromedp.Click(fmt.Sprintf(`//a[contains(., %[1]q)]|//button[contains(., %[1]q)]`, text)))
}

// unreadable finds what is wider than the page, has too little contrast (WCAG 2, 1.4.3), or
// has no label.
const unreadable = `(() => {
  const found = [];
  if (document.documentElement.scrollWidth > innerWidth) found.push("wider than the page: " + document.documentElement.scrollWidth);
  if (document.getElementById("changed")?.hidden === false) found.push("says that the mount has changed, which it has not");
  const shine = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
  const parse = s => s.match(/[\d.]+/g).map(Number);
  const back = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  for (const e of document.querySelectorAll("body *")) {
    if (!e.checkVisibility() || e.matches(":disabled") || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const a = shine(parse(getComputedStyle(e).color).slice(0, 3)), b = shine(back(e));
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (contrast < 4.5) found.push("contrast " + contrast.toFixed(1) + ": " + e.outerHTML.slice(0, 100));
  }
  for (const e of document.querySelectorAll("input:not([type=hidden]), button, a")) {
    if (!(e.labels?.length || e.textContent.trim())) found.push("no label: " + e.outerHTML.slice(0, 100));
  }
  return found;
})()`

// looks at a page in each width and colour, takes a picture and wants it to be readable.
func (c *chromium) looks(name, path string) {
	c.t.Helper()
	for _, width := range []int64{400, 1400} {
		for _, scheme := range []string{"light", "dark"} {
			call(c, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			c.do(name, chromedp.EmulateViewport(width, 900), chromedp.Navigate(c.root+path), chromedp.WaitVisible("h1"))
			assert.Slice(c.t, assert.Of(chromedp.Run(c.ctx, chromedp.Evaluate[[]string](unreadable))).OK(c.t, name), nil, name, width, scheme)
			if c.pictures != "" {
				picture := assert.Of(chromedp.Run(c.ctx, chromedp.FullScreenshot(100))).OK(c.t, name)
				assert.OK(c.t, os.WriteFile(filepath.Join(c.pictures, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), picture, 0o644))
			}
		}
	}
	c.do("a usual width", chromedp.EmulateViewport(1000, 900))
}

// A person clicks through a conflict and a restore in a browser, sees what happens meanwhile,
// and can read every page, with JavaScript and without.
func TestUIInABrowser(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	control := storedBy(t, w, "shown", "mode: pull-push, pull: {on: turn-start}, commit: {on: per-turn}, push: {on: per-commit}, conflict: {policy: manual}")
	m := w.Mount("@acme/shown")
	write := func(name, text string) {
		t.Helper()
		assert.OK(t, os.MkdirAll(filepath.Dir(m.Dir+"/"+name), 0o755))
		assert.OK(t, os.WriteFile(m.Dir+"/"+name, []byte(text), 0o644))
	}
	turn := func(id string, files map[string]string) {
		t.Helper()
		w.MustRun("event", m.Dir, "turn-start", "--var", "turnId="+id, "--var", "conversationId=spring-campaign")
		for name, text := range files {
			write(name, text)
		}
		w.MustRun("event", m.Dir, "turn-end")
	}
	long := "docs/" + strings.Repeat("a-long-name-", 15) + "/and <b>bold & \"quoted\"</b>\u202e.md"
	turn("7", map[string]string{"docs/plan.md": "# Plan\n\nOne.\nTwo.\nThree.\n", "data.bin": "\x00\x01", long: "x\n"})
	turn("8", map[string]string{"docs/plan.md": "# Plan\n\nOne.\nTwo, <script>alert(1)</script>.\nThree.\n", "data.bin": "\x00\x02"})
	s := showUI(t, w, m.Dir)
	c := openChromium(t, w, s)
	c.do("changes", chromedp.Navigate(c.root+"/changes"))
	write("docs/new.md", "new\n")
	c.has("docs/new.md") // by itself
	assert.OK(t, os.Remove(m.Dir+"/docs/new.md"))

	c.clicks("docs/plan.md")
	c.clicks("restore …")
	c.has("Would be restored")
	c.looks("restore", "/restore?path=docs/plan.md&turn=7&conversation=spring-campaign")
	c.clicks("Restore")
	c.has("restored docs/plan.md")
	checkContent(t, m.Dir+"/docs/plan.md", "# Plan\n\nOne.\nTwo.\nThree.\n")
	c.clicks("History of")
	c.has("as it is now")

	w.Run("event", m.Dir, "turn-end")
	for name, text := range map[string]string{"docs/plan.md": "# Plan\n\nOne, %s.\nTwo.\nThree.\n", "data.bin": "\x00%s"} {
		write(name, fmt.Sprintf(text, "ours"))
		assert.Is(t, control.Tamper(t.Context(), providers.MustLocator(name), fmt.Appendf(nil, text, "theirs")), nil, "tamper")
	}
	assert.Equal(t, w.Run("event", m.Dir, "turn-end").Code, 8, "turn-end with two conflicts")
	for name, path := range map[string]string{"overview": "/", "changes": "/changes", "file": "/file?path=docs/plan.md", "diff": "/diff?turn=8&conversation=spring-campaign", "conflicts": "/conflicts",
		"conflict": "/conflict?path=docs/plan.md", "binary": "/conflict?path=data.bin", "queue": "/queue", "refused": "/conflict?path=gone"} {
		c.looks(name, path)
	}
	c.do("conflicts", chromedp.Navigate(c.root+"/conflicts"))
	c.clicks("docs/plan.md")
	c.clicks("Take the remote version")
	c.has("took the remote version")
	checkContent(t, m.Dir+"/docs/plan.md", "# Plan\n\nOne, theirs.\nTwo.\nThree.\n")

	call(c, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	c.do("without JavaScript", chromedp.Navigate(c.root+"/conflict?path=data.bin"))
	c.clicks("Keep both")
	c.has("kept the local one beside it")
	checkContent(t, m.Dir+"/data.bin", "\x00theirs")
	call(c, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{})

	c.do("a message that is being written", chromedp.Navigate(c.root+"/queue"), chromedp.SendKeys("#message", "half a sen"))
	write("docs/plan.md", "changed meanwhile\n")
	c.do("the state", chromedp.WaitVisible(`//p[@id="state"]//*[contains(text(), "unsaved") or contains(text(), "error")]`), chromedp.SendKeys("#message", "tence"))
	assert.Of(chromedp.Run(c.ctx, chromedp.Value("#message"))).Equal(t, "half a sentence", "the message")
	c.clicks("Send what has changed")
	c.has("Committed")

	c.do("overview", chromedp.Navigate(c.root+"/"))
	m.Stop()
	c.has("no workspace is mounted at")
	c.looks("ended", "/")
	m.Start()
	c.do("it is back", chromedp.WaitVisible(`//h2[text()="Mount"]`))
	assert.Slice(t, c.heard(), nil, "what the page complained of")
	s.end()
	c.do("the page that is not served any more", chromedp.WaitVisible("#offline"))
}
