package manual

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/wrap"
)

// width is that of the lines of the source; the formatter fills its own.
const width = 80

// roff writes the language of man(7).
type roff struct{ w *strings.Builder }

// title begins a page.
func (r roff) title(name string, section int, epoch, version, manual string) {
	date := ""
	if seconds, err := strconv.ParseInt(epoch, 10, 64); err == nil {
		date = time.Unix(seconds, 0).UTC().Format(time.DateOnly)
	}
	r.line(fmt.Sprintf(`.TH %s %d "%s" "wsmount %s" "%s"`, escape(strings.ToUpper(name)), section, date, version, manual))
}

// item is a paragraph with a tag.
func (r roff) item(tag, value, text string) {
	r.macro("TP")
	tag = `\fB` + escape(tag) + `\fR`
	if value != "" {
		tag += ` \fI` + escape(value) + `\fR`
	}
	r.line(tag)
	r.prose(text)
}

// text writes paragraphs and examples, examples indented.
func (r roff) text(text string) {
	if text == "" {
		return
	}
	example := false
	r.paragraph()
	for _, l := range strings.Split(text, "\n") {
		if is := strings.HasPrefix(l, "  "); is != example {
			r.macro(map[bool]string{true: "EX", false: "EE"}[is])
			example = is
		}
		switch {
		case l == "":
			r.paragraph()
		case example:
			r.line(escape(l))
		default:
			r.prose(l)
		}
	}
	if example {
		r.macro("EE")
	}
}

// paragraph begins one, where a heading has not done so.
func (r roff) paragraph() {
	before := strings.TrimSuffix(r.w.String(), "\n")
	switch last := before[strings.LastIndex(before, "\n")+1:]; {
	case strings.HasPrefix(last, ".SH"), strings.HasPrefix(last, ".SS"):
	default:
		r.macro("PP")
	}
}

// prose writes text with which the formatter fills lines.
func (r roff) prose(text string) {
	for _, l := range wrap.Lines(strings.Join(strings.Fields(quoted(text)), " "), width) {
		if strings.HasPrefix(l, ".") { // a macro, else
			l = `\&` + l
		}
		r.line(l)
	}
}

// quoted escapes text in which `back quotes` mean text to type.
func quoted(s string) string {
	parts := strings.Split(s, "`")
	for i := range parts {
		if parts[i] = escape(parts[i]); i%2 == 1 {
			parts[i] = `\fB` + parts[i] + `\fR`
		}
	}
	return strings.Join(parts, "")
}

// escape keeps the formatter from reading its own language into a text, and from
// setting - ~ ^ ' and ` as other characters than those that one types.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "'", `\(aq`, "`", `\(ga`).Replace(s)
}

// line writes a line as it stands.
func (r roff) line(s string) { r.w.WriteString(s + "\n") }

// macro writes a request with arguments.
func (r roff) macro(name string, args ...string) {
	r.w.WriteString("." + name)
	for _, a := range args {
		r.w.WriteString(` "` + strings.ReplaceAll(escape(a), `"`, `\(dq`) + `"`)
	}
	r.w.WriteString("\n")
}
