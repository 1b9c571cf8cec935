package manual

import (
	"html"
	"io"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/reference"
)

// Each form of a page has each key, what is said of it, and its example. That the pages have
// all that the parsers read is a test of package reference.
func TestReferences(t *testing.T) {
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for _, name := range reference.Names() {
		page := assert.Of(reference.Find(name, mountspec.Providers())).OK(t)
		p := Reference{Version: "1.2.3", Epoch: "0", Page: page}
		for form, of := range map[string]struct {
			print            func(io.Writer) error
			title            string
			key, text, shown func(string) string
		}{
			"man":  {p.Man, `.TH ` + escape(strings.ToUpper(pages[name])) + ` 5 "1970-01-01" "wsmount 1.2.3"`, func(s string) string { return `\fB` + escape(s) + `\fR` }, quoted, escape},
			"text": {func(w io.Writer) error { return p.Text(w, 80) }, pages[name] + " - ", func(s string) string { return " " + s }, words, words},
			"html": {p.HTML, "<title>" + pages[name] + "(5)</title>", func(s string) string { return "<code>" + html.EscapeString(s) + "</code>" },
				func(s string) string { return strings.TrimSuffix(strings.TrimPrefix(htmlText(s), "<p>"), "</p>\n") }, html.EscapeString},
		} {
			var b strings.Builder
			assert.OK(t, of.print(&b))
			said := words(b.String())
			assert.Contains(t, said, of.title, name, form)
			for _, s := range page.Sections {
				for _, k := range s.Keys {
					for _, part := range []string{of.key(k.Path), of.text(k.Text), of.shown(k.Example)} {
						assert.True(t, strings.Contains(said, words(part)), name, form, s.Title, k.Path, "lacks", part)
					}
				}
			}
			for _, e := range page.Examples {
				assert.True(t, strings.Contains(said, words(of.shown(e.Text))), name, form, e.Name)
			}
		}
	}
}
