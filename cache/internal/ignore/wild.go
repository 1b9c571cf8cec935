package ignore

import "strings"

// outcome is the result of a comparison. One that ends early says how far back another choice
// could help.
type outcome uint8

const (
	unlike outcome = iota
	alike
	notEver // the text is too short, or the pattern is broken
	notHere // only an earlier ** could still match this part of the text
)

// wild compares a text with a pattern as git does. In a path, a star and brackets match no
// slash, and ** matches whole segments.
func wild(pattern, text string, path bool) bool {
	w := &wildcard{p: pattern, t: text, path: path}
	if strings.Count(pattern, "*") > 2 {
		w.known = map[[2]int]outcome{}
	}
	return w.match(0, 0) == alike
}

// wildcard is one comparison.
type wildcard struct {
	p, t  string
	path  bool
	known map[[2]int]outcome // with many stars the same pairs recur
}

// at is a byte of a string, 0 after its end: neither string contains a 0.
func at(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

func (w *wildcard) match(i, k int) outcome {
	if w.known == nil {
		return w.compare(i, k)
	}
	at := [2]int{i, k}
	if o, ok := w.known[at]; ok {
		return o
	}
	o := w.compare(i, k)
	w.known[at] = o
	return o
}

// compare compares the pattern from i with the text from k.
func (w *wildcard) compare(i, k int) outcome {
	begin := i
	for ; i < len(w.p); i, k = i+1, k+1 {
		c := at(w.t, k)
		if c == 0 && w.p[i] != '*' {
			return notEver
		}
		switch w.p[i] {
		case '?':
			if w.path && c == '/' {
				return unlike
			}
		case '[':
			in, end := bracket(w.p, i, c)
			switch {
			case end < 0:
				return notEver
			case !in, w.path && c == '/':
				return unlike
			}
			i = end
		case '*':
			next, slashes, done := w.stars(begin, i, k)
			if done {
				return alike
			}
			if i = next; slashes || at(w.p, i) != '/' {
				return w.take(i, k, slashes)
			}
			slash := strings.IndexByte(w.t[k:], '/')
			if slash < 0 {
				return unlike
			}
			k += slash // matched by the slash of the pattern
		case '\\':
			i++
			fallthrough
		default:
			if at(w.p, i) != c {
				return unlike
			}
		}
	}
	if k < len(w.t) {
		return unlike
	}
	return alike
}

// stars reads the stars at i: next is the position after them, slashes whether they match
// slashes too. done: they matched nothing, and all the rest matched.
func (w *wildcard) stars(begin, i, k int) (next int, slashes, done bool) {
	next = i + 1
	for at(w.p, next) == '*' {
		next++
	}
	if !w.path {
		return next, true, false
	}
	rest := w.p[next:]
	whole := next > i+1 && (i == begin || w.p[i-1] == '/') &&
		(rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`))
	if whole && rest != "" && rest[0] == '/' && w.match(next+1, k) == alike {
		return next, true, true
	}
	return next, whole, false
}

// take has stars match as little as possible, and then more.
func (w *wildcard) take(i, k int, slashes bool) outcome {
	if i == len(w.p) {
		if !slashes && strings.Contains(w.t[k:], "/") {
			return unlike
		}
		return alike
	}
	for ; k < len(w.t); k++ {
		if c := w.p[i]; !strings.ContainsRune(special, rune(c)) {
			for k < len(w.t) && w.t[k] != c && (slashes || w.t[k] != '/') {
				k++
			}
			if at(w.t, k) != c {
				return unlike
			}
		}
		o := w.match(i, k)
		switch {
		case o != unlike && (!slashes || o != notHere):
			return o
		case o == unlike && !slashes && w.t[k] == '/':
			return notHere
		}
	}
	return notEver
}

// bracket reports whether c is in the brackets at i of a pattern, and where those end;
// negative: nowhere.
func bracket(p string, i int, c byte) (in bool, end int) {
	i++
	negated := at(p, i) == '!' || at(p, i) == '^'
	if negated {
		i++
	}
	before := byte(0) // possible start of a range
	for first := true; first || at(p, i) != ']'; first = false {
		b := at(p, i)
		switch {
		case b == 0:
			return false, -1
		case b == '-' && before != 0 && at(p, i+1) != 0 && at(p, i+1) != ']':
			if i++; p[i] == '\\' {
				if i++; i == len(p) {
					return false, -1
				}
			}
			in = in || before <= c && c <= p[i]
			b = 0
		case b == '[' && at(p, i+1) == ':':
			name, after, found := className(p, i)
			switch is, known := classes[name]; {
			case after < 0, found && !known:
				return false, -1
			case found:
				in = in || is(c)
				i, b = after, 0
			default: // a literal
				in = in || c == '['
			}
		default:
			if b == '\\' {
				if i++; i == len(p) {
					return false, -1
				}
				b = p[i]
			}
			in = in || b == c
		}
		before = b
		i++
	}
	return in != negated, i
}

// className reads the name between [: and :] at i. after is the position of its last bracket;
// negative: there is none at all.
func className(p string, i int) (name string, after int, found bool) {
	n := strings.IndexByte(p[i+2:], ']')
	if n < 0 {
		return "", -1, false
	}
	name, found = strings.CutSuffix(p[i+2:i+2+n], ":")
	return name, i + 2 + n, found
}

func between(c, from, to byte) bool { return from <= c && c <= to }
func lower(c byte) bool             { return between(c, 'a', 'z') }
func upper(c byte) bool             { return between(c, 'A', 'Z') }
func digit(c byte) bool             { return between(c, '0', '9') }
func graph(c byte) bool             { return between(c, '!', '~') }
func alnum(c byte) bool             { return lower(c) || upper(c) || digit(c) }

// classes are those of ASCII: in git they do not depend on the locale.
var classes = map[string]func(byte) bool{
	"alnum": alnum, "lower": lower, "upper": upper, "digit": digit, "graph": graph,
	"alpha":  func(c byte) bool { return lower(c) || upper(c) },
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"print":  func(c byte) bool { return between(c, ' ', '~') },
	"punct":  func(c byte) bool { return graph(c) && !alnum(c) },
	"space":  func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' },
	"xdigit": func(c byte) bool { return digit(c) || between(c, 'a', 'f') || between(c, 'A', 'F') },
}
