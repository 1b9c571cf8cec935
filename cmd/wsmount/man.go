package main

import (
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// A manual is a page in the man(7) language. What it says of commands and flags
// comes from the structures that the help is printed from.
type manual struct{ w *strings.Builder }

// printManual writes wsmount(1). epoch is the time of the release in seconds, as
// $SOURCE_DATE_EPOCH has it; without it the page has no date.
func printManual(w io.Writer, version, epoch string) error {
	m := manual{&strings.Builder{}}
	date := ""
	if seconds, err := strconv.ParseInt(epoch, 10, 64); err == nil {
		date = time.Unix(seconds, 0).UTC().Format(time.DateOnly)
	}
	m.line(`.TH WSMOUNT 1 "` + date + `" "wsmount ` + version + `" "User Commands"`)
	m.macro("SH", "NAME")
	m.line(`wsmount \- mount a declared workspace as a directory`)
	m.synopsis()
	m.macro("SH", "DESCRIPTION")
	m.text(programHelp)
	m.text("Flags may stand anywhere before --; all commands take those under COMMON FLAGS.")
	m.commands()
	m.macro("SH", "COMMON FLAGS")
	m.flags(commonFlags())
	for _, s := range manualSections {
		m.section(s)
	}
	m.macro("SH", "EXIT STATUS")
	for code, e := range exitCodes {
		m.item(strconv.Itoa(code), "", e.long)
	}
	m.macro("SH", "SEE ALSO")
	m.line(strings.Join([]string{`.BR mount (8)`, `.BR umount (8)`, `.BR fstab (5)`, `.BR fusermount3 (1)`}, " ,\n"))
	_, err := io.WriteString(w, m.w.String())
	return err
}

func (m manual) synopsis() {
	m.macro("SH", "SYNOPSIS")
	for i, line := range [][2]string{
		{"wsmount", "WORKSPACE MOUNTPOINT [FLAG ...]"},
		{"wsmount", "COMMAND [ARGUMENT ...] [FLAG ...]"},
		{"mount -t wsmount", "[-o OPTIONS] WORKSPACE MOUNTPOINT"},
		{"umount", "MOUNTPOINT"},
	} {
		if i > 0 {
			m.macro("br")
		}
		m.macro("B", line[0])
		m.line(escape(line[1]))
	}
}

// commands describes every command that can be run.
func (m manual) commands() {
	m.macro("SH", "COMMANDS")
	eachCommand("", commands(), func(name string, c *cli.Command) {
		if len(c.Subcommands) > 0 {
			return
		}
		m.macro("SS", strings.TrimSpace("wsmount "+name+" "+c.ArgsUsage))
		m.text(sentence(c.Usage))
		m.text(c.Description)
		m.flags(c.Flags[:len(c.Flags)-len(commonFlags())])
	})
}

// sentence makes one of a command's usage.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

func (m manual) flags(flags []cli.Flag) {
	for _, f := range flags {
		names, value, usage := describeFlag(f.(cli.DocGenerationFlag))
		m.item(strings.Join(names, ", "), value, usage)
	}
}

func (m manual) section(s manualSection) {
	m.macro("SH", s.title)
	m.text(s.text)
	for _, i := range s.items {
		m.item(i[0], "", i[1])
	}
}

// item is a paragraph with a tag.
func (m manual) item(tag, value, text string) {
	m.macro("TP")
	tag = `\fB` + escape(tag) + `\fR`
	if value != "" {
		tag += ` \fI` + escape(value) + `\fR`
	}
	m.line(tag)
	m.prose(text)
}

// text writes paragraphs and examples, in the form that indent reads.
func (m manual) text(text string) {
	if text == "" {
		return
	}
	example := false
	m.paragraph()
	for _, l := range strings.Split(text, "\n") {
		if is := strings.HasPrefix(l, "  "); is != example {
			m.macro(map[bool]string{true: "EX", false: "EE"}[is])
			example = is
		}
		switch {
		case l == "":
			m.paragraph()
		case example:
			m.line(escape(l))
		default:
			m.prose(l)
		}
	}
	if example {
		m.macro("EE")
	}
}

// paragraph begins one, where a heading has not done so.
func (m manual) paragraph() {
	before := strings.TrimSuffix(m.w.String(), "\n")
	switch last := before[strings.LastIndex(before, "\n")+1:]; {
	case strings.HasPrefix(last, ".SH"), strings.HasPrefix(last, ".SS"):
	default:
		m.macro("PP")
	}
}

// prose writes what the formatter fills lines with.
func (m manual) prose(text string) {
	for _, l := range breakLines(quoted(text), width) {
		if strings.HasPrefix(l, ".") { // a macro, else
			l = `\&` + l
		}
		m.line(l)
	}
}

// quoted escapes text in which `back quotes` mean what is typed.
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
func (m manual) line(s string) { m.w.WriteString(s + "\n") }

// macro writes a request with arguments.
func (m manual) macro(name string, args ...string) {
	m.w.WriteString("." + name)
	for _, a := range args {
		m.w.WriteString(` "` + strings.ReplaceAll(escape(a), `"`, `\(dq`) + `"`)
	}
	m.w.WriteString("\n")
}
