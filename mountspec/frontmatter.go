package mountspec

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// maxNodes bounds the memory that one frontmatter can make the YAML parser allocate.
const maxNodes = 1 << 17

// The YAML parser tries every plain scalar that begins like a date as one, and
// the standard library reads the machine's time zone from the disk when it
// first meets an offset. Doing that now, once, keeps parsing free of I/O.
//
//lint:ignore SA4017 what it reads on the way is the point
var _, _ = time.Unix(0, 0).Zone()

var utf8BOM = []byte("\xef\xbb\xbf")

// parseFrontmatter finds the frontmatter of src and parses it. It returns the
// root mapping, or nil after reporting why there is none.
func (d *decoder) parseFrontmatter(src Source) *yaml.Node {
	front, rest, ok := d.cut(src.Data)
	if !ok || !d.checkBytes(front) || !d.checkSize(front) {
		return nil
	}
	d.checkRest(rest, bytes.Count(front, []byte("\n"))+3)
	return d.parseYAML(front)
}

// cut returns the lines between the two delimiters and the rest behind them.
func (d *decoder) cut(data []byte) (front, rest []byte, ok bool) {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		d.reportLine(1, "encoding", "save the file as UTF-8", "the file is UTF-16")
		return nil, nil, false
	}
	first, rest, more := bytes.Cut(bytes.TrimPrefix(data, utf8BOM), []byte("\n"))
	if !more || !isDelimiter(first) {
		d.reportLine(1, "frontmatter-missing", "put --- alone on the first line", "the file does not begin with a --- line")
		return nil, nil, false
	}
	d.line0 = 1
	end, next := findDelimiter(rest)
	switch {
	case end >= 0 && end <= MaxFrontmatter:
		return rest[:end], rest[next:], true
	case len(rest) > MaxFrontmatter:
		d.reportLine(1, "frontmatter-too-large", "keep bulk data out of the manifest", "the frontmatter is larger than %d bytes, or never closed", MaxFrontmatter)
	default:
		d.reportLine(1, "frontmatter-unclosed", "close it with --- alone on a line", "the frontmatter that begins here is never closed")
	}
	return nil, nil, false
}

// Frontmatter is where the frontmatter of a manifest stands in its text: data[from:to],
// between the two lines of dashes.
func Frontmatter(data []byte) (from, to int, ok bool) {
	front, _, ok := newDecoder("", Options{}).cut(data)
	from = bytes.IndexByte(data, '\n') + 1
	return from, from + len(front), ok
}

func isDelimiter(line []byte) bool {
	return bytes.Equal(bytes.TrimRight(line, " \t\r"), []byte("---"))
}

// findDelimiter returns where the closing line starts and where the next line
// does, or -1. It looks no further than MaxFrontmatter.
func findDelimiter(b []byte) (start, next int) {
	for start <= min(len(b), MaxFrontmatter) {
		length := bytes.IndexByte(b[start:], '\n')
		end := start + length
		if length < 0 {
			end = len(b)
		}
		if isDelimiter(b[start:end]) {
			return start, min(end+1, len(b))
		}
		if length < 0 {
			break
		}
		start = end + 1
	}
	return -1, -1
}

// checkBytes refuses bytes that make two parsers disagree about the text.
func (d *decoder) checkBytes(front []byte) bool {
	line := 1
	for i := 0; i < len(front); {
		if c := front[i]; c >= ' ' && c < 0x7f {
			i++
			continue
		}
		r, size := utf8.DecodeRune(front[i:])
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && size == 1:
			d.reportLine(d.lineIn(line), "encoding", "save the file as UTF-8", "the line is not valid UTF-8")
			return false
		case r == '\r' && (i+1 == len(front) || front[i+1] != '\n'):
			d.reportLine(d.lineIn(line), "control-character", "end lines with a line feed", "the line holds a carriage return without a line feed")
			return false
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f, r == 0x85, r == 0x2028, r == 0x2029:
			d.reportLine(d.lineIn(line), "control-character", "remove it, or write it as an escape in double quotes", "the line holds the control character %U", r)
			return false
		}
		i += size
	}
	return true
}

// checkSize bounds the nodes that the text can become: each needs one of these bytes.
func (d *decoder) checkSize(front []byte) bool {
	n := 0
	for _, c := range []byte("\n,:-?[{") {
		n += bytes.Count(front, []byte{c})
	}
	if n > maxNodes {
		d.reportLine(1, "frontmatter-too-large", "keep bulk data out of the manifest", "the frontmatter has more than %d parts", maxNodes)
		return false
	}
	return true
}

var startsLikeYAML = expression(`^[A-Za-z_][A-Za-z0-9_-]*:\s`)

// checkRest refuses a second frontmatter right behind the first: which of the
// two governs would depend on the reader. A rule in the text below is fine, and
// so is one with a line behind it that only looks like a key.
func (d *decoder) checkRest(rest []byte, line int) {
	rest = rest[:min(len(rest), sourceSlack)]
	text := bytes.TrimLeft(rest, " \t\r\n")
	line += bytes.Count(rest[:len(rest)-len(text)], []byte("\n"))
	first, block, _ := bytes.Cut(text, []byte("\n"))
	if end, _ := findDelimiter(block); isDelimiter(first) && end >= 0 && startsLikeYAML().Match(block) {
		d.reportLine(line, "second-document", "keep one document per file", "a second document begins here")
	}
}

func (d *decoder) parseYAML(front []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(front))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		d.reportLine(1, "frontmatter-empty", "", "the frontmatter is empty")
		return nil
	} else if err != nil {
		d.reportSyntax(err, front)
		return nil
	}
	root := doc.Content[0]
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		d.reportLine(d.lineIn(second.Line), "second-document", "keep one document per file", "a second document begins here")
	case !errors.Is(err, io.EOF):
		d.reportSyntax(err, front)
		return nil
	}
	d.checkTree(root, "", 0)
	return root
}

var yamlLine = expression(`^yaml: (?:line (\d+): )?`)

// reportSyntax turns an error of the YAML parser into a finding with a line of
// the file, and recognises the commonest cause.
func (d *decoder) reportSyntax(err error, front []byte) {
	m := yamlLine().FindStringSubmatch(err.Error())
	line, message := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if m != nil && m[1] != "" {
		line, _ = strconv.Atoi(m[1])
		message = err.Error()[len(m[0]):]
	}
	if tab := tabLine(front, line); tab > 0 {
		d.reportLine(d.lineIn(tab), "tab-indentation", "indent with spaces", "the line is indented with a tab")
		return
	}
	if strings.Contains(message, "document start") {
		d.reportLine(d.lineIn(line), "second-document", "keep one document per file", "a second document begins here")
		return
	}
	d.reportLine(d.lineIn(line), "yaml-syntax", "", "not valid YAML: %s", message)
}

// tabLine looks for a tab in the indentation of the line or of its neighbours.
func tabLine(front []byte, line int) int {
	n := 0
	for l := range bytes.Lines(front) {
		n++
		indent := l[:len(l)-len(bytes.TrimLeft(l, " \t"))]
		if n >= line-1 && n <= line+1 && bytes.IndexByte(indent, '\t') >= 0 {
			return n
		}
		if n > line {
			break
		}
	}
	return 0
}
