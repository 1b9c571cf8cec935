package manual

import (
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/wrap"
	"github.com/wsmount/wsmount/mountspec/reference"
)

// A Reference is a page about files: the manual page wsmount.yaml(5) or wsmount-manifest(5).
type Reference struct {
	Version, Epoch string // as of a Page
	reference.Page
}

// pages are the manual's names of the references.
var pages = map[string]string{"config": "wsmount.yaml", "manifest": "wsmount-manifest"}

// Print writes the page: for man(1), for a browser, or else for a terminal that is so wide.
func (p Reference) Print(w io.Writer, man, html bool, width int) error {
	switch {
	case man:
		return p.Man(w)
	case html:
		return p.HTML(w)
	}
	return p.Text(w, width)
}

// Man writes the manual page.
func (p Reference) Man(w io.Writer) error {
	r := roff{&strings.Builder{}}
	r.title(pages[p.Name], 5, p.Epoch, p.Version, "File Formats")
	r.macro("SH", "NAME")
	r.line(escape(pages[p.Name]) + ` \- ` + escape(p.Title))
	r.macro("SH", "DESCRIPTION")
	r.text(p.Intro)
	r.text(legend)
	for _, s := range p.Sections {
		r.macro("SH", s.Title)
		r.text(s.Intro)
		for _, k := range s.Keys {
			r.item(k.Path, k.Type, k.Text)
			if said := facts(k); said != "" {
				r.macro("br")
				r.prose(said)
			}
			if k.Example != "" {
				r.macro("EX")
				r.line(escape(k.Example))
				r.macro("EE")
			}
		}
	}
	r.macro("SH", "EXAMPLES")
	for _, e := range p.Examples {
		r.macro("SS", e.Name)
		r.macro("EX")
		for l := range strings.Lines(e.Text) {
			if l = escape(strings.TrimSuffix(l, "\n")); strings.HasPrefix(l, ".") {
				l = `\&` + l
			}
			r.line(l)
		}
		r.macro("EE")
	}
	r.macro("SH", "SEE ALSO")
	r.line(`.BR wsmount (1),` + "\n" + `.BR ` + escape(p.other()) + ` (5)`)
	_, err := io.WriteString(w, r.w.String())
	return err
}

const legend = "Beside a key stands what it takes. `<name>` stands for what one chooses, and `[]` for each entry of a list. " +
	"The line below shows it in its place, as it may be written."

// facts are whether a key is needed, and its default.
func facts(k reference.Key) string {
	switch {
	case k.Required:
		return "It is needed."
	case k.Default != "":
		return "Default: " + k.Default + "."
	}
	return ""
}

// other is the other page.
func (p Reference) other() string {
	for name, title := range pages {
		if name != p.Name {
			return title
		}
	}
	return ""
}

// Text writes the page for a terminal that is so wide.
func (p Reference) Text(w io.Writer, width int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s - %s\n\n%s\n%s\n", pages[p.Name], p.Title, wrap.Text(p.Intro, 0, width), wrap.Text(legend, 0, width))
	for _, s := range p.Sections {
		fmt.Fprintf(&b, "%s\n\n", s.Title)
		if s.Intro != "" {
			fmt.Fprintf(&b, "%s\n", wrap.Text(s.Intro, 2, width))
		}
		for _, k := range s.Keys {
			tag := k.Path
			if k.Type != "" {
				tag += ": " + k.Type
			}
			fmt.Fprintf(&b, "%s%s", wrap.Text(tag, 2, width), wrap.Text(strings.TrimSpace(k.Text+"\n"+facts(k)), 6, width))
			if k.Example != "" {
				fmt.Fprintf(&b, "        %s\n", k.Example)
			}
			b.WriteString("\n")
		}
	}
	for _, e := range p.Examples {
		fmt.Fprintf(&b, "%s, for example:\n\n  %s\n\n", e.Name, strings.ReplaceAll(strings.TrimSpace(e.Text), "\n", "\n  "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const style = `body{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
code,pre{font-family:monospace;font-size:.95em}pre{background:#f4f4f4;padding:.5em .8em;overflow-x:auto}
dt{margin-top:1em;font-weight:bold}dt i{font-weight:normal}h2{margin-top:2em;border-bottom:1px solid #ccc}
@media (prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#252525}a{color:#8bf}}`

// HTML writes the page for a browser, in one file.
func (p Reference) HTML(w io.Writer) error {
	var b strings.Builder
	name := html.EscapeString(pages[p.Name])
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"+
		"<title>%s(5)</title>\n<style>\n%s\n</style>\n</head>\n<body>\n<h1>%s</h1>\n<p>%s, wsmount %s</p>\n%s%s<ul>\n",
		name, style, name, html.EscapeString(p.Title), html.EscapeString(p.Version), htmlText(p.Intro), htmlText(legend))
	for i, s := range p.Sections {
		fmt.Fprintf(&b, "<li><a href=\"#s%d\">%s</a></li>\n", i, html.EscapeString(s.Title))
	}
	b.WriteString("<li><a href=\"#examples\">Examples</a></li>\n</ul>\n")
	for i, s := range p.Sections {
		fmt.Fprintf(&b, "<h2 id=\"s%d\">%s</h2>\n%s", i, html.EscapeString(s.Title), htmlText(s.Intro))
		if len(s.Keys) > 0 {
			b.WriteString("<dl>\n")
			for _, k := range s.Keys {
				htmlKey(&b, fmt.Sprintf("s%d.%s", i, k.Path), k)
			}
			b.WriteString("</dl>\n")
		}
	}
	b.WriteString("<h2 id=\"examples\">Examples</h2>\n")
	for _, e := range p.Examples {
		fmt.Fprintf(&b, "<h3>%s</h3>\n<pre>%s</pre>\n", html.EscapeString(e.Name), html.EscapeString(e.Text))
	}
	b.WriteString("</body>\n</html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

var notOfAnchor = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func htmlKey(b *strings.Builder, id string, k reference.Key) {
	id = notOfAnchor.ReplaceAllString(id, "_")
	fmt.Fprintf(b, "<dt id=\"%s\"><a href=\"#%s\"><code>%s</code></a> <i>%s</i></dt>\n<dd>%s", id, id,
		html.EscapeString(k.Path), html.EscapeString(k.Type), htmlText(strings.TrimSpace(k.Text+" "+facts(k))))
	if k.Example != "" {
		fmt.Fprintf(b, "<pre>%s</pre>\n", html.EscapeString(k.Example))
	}
	b.WriteString("</dd>\n")
}

// htmlText is a text with its paragraphs and examples.
func htmlText(text string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(text, "\n\n") {
		switch {
		case part == "":
		case strings.HasPrefix(part, "  "):
			fmt.Fprintf(&b, "<pre>%s</pre>\n", html.EscapeString(part))
		default:
			words := strings.Split(html.EscapeString(part), "`")
			for i := 1; i < len(words); i += 2 {
				words[i] = "<code>" + words[i] + "</code>"
			}
			fmt.Fprintf(&b, "<p>%s</p>\n", strings.Join(words, ""))
		}
	}
	return b.String()
}
