package object

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Commit is the content of a commit.
type Commit struct {
	Tree      ID
	Parents   []ID
	Author    Signature
	Committer Signature
	Message   string
}

// Signature is a person and a time.
type Signature struct {
	Name, Email string
	When        time.Time
}

// ParseCommit reads the parts of a commit that its history needs: tree, parents, and the time of
// the commit.
func ParseCommit(raw []byte) (c Commit, err error) {
	for len(raw) > 0 {
		line, rest, _ := bytes.Cut(raw, []byte{'\n'})
		if len(line) == 0 {
			c.Message = string(rest)
			break
		}
		raw = rest
		word, value, _ := bytes.Cut(line, []byte{' '})
		switch string(word) {
		case "tree":
			c.Tree, err = parseID(value)
		case "parent":
			var id ID
			id, err = parseID(value)
			c.Parents = append(c.Parents, id)
		case "author":
			c.Author = parseSignature(string(value))
		case "committer":
			c.Committer = parseSignature(string(value))
		}
		if err != nil {
			return c, err
		}
	}
	if c.Tree.IsZero() {
		return c, fmt.Errorf("a commit: %w", ErrMalformed)
	}
	return c, nil
}

func parseID(b []byte) (id ID, err error) {
	if len(b) != 2*len(id) {
		return id, fmt.Errorf("a commit: %w", ErrMalformed)
	}
	if _, err := hex.Decode(id[:], b); err != nil {
		return id, fmt.Errorf("a commit: %w", ErrMalformed)
	}
	return id, nil
}

// RFC 3339 can say the years 0 to 9999.
const minSecond, maxSecond = -62_167_219_200, 253_402_300_799

// parseSignature makes the best of it: other programs' commits may have any text. A time that is
// none, or whose year has no four digits, is 1970.
func parseSignature(s string) (sig Signature) {
	name, rest, ok := strings.Cut(s, " <")
	if !ok {
		return sig
	}
	email, when, _ := strings.Cut(rest, "> ")
	seconds, _, _ := strings.Cut(when, " ")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < minSecond || n > maxSecond {
		n = 0
	}
	return Signature{name, email, time.Unix(n, 0).UTC()}
}

// Encode is the commit as git keeps it.
func (c Commit) Encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, p := range c.Parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n%s", c.Author, c.Committer, c.Message)
	return b.Bytes()
}

// Moved is a commit with another tree and parent. It keeps everything else, except a signature,
// which would be of the other commit.
func Moved(raw []byte, tree, parent ID) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\nparent %s\n", tree, parent)
	header, message, _ := bytes.Cut(raw, []byte("\n\n"))
	left := false // of a header whose further lines begin with a space
	for line := range bytes.SplitSeq(header, []byte("\n")) {
		word, _, _ := bytes.Cut(line, []byte(" "))
		switch string(word) {
		case "": // a continuation line
		case "tree", "parent", "gpgsig", "gpgsig-sha256":
			left = true
		default:
			left = false
		}
		if !left {
			b.Write(line)
			b.WriteByte('\n')
		}
	}
	b.WriteByte('\n')
	b.Write(message)
	return b.Bytes()
}

// String is the signature as a commit has it. Characters that would end it early are left out.
func (s Signature) String() string {
	return fmt.Sprintf("%s <%s> %d %s", Clean(s.Name), Clean(s.Email), s.When.Unix(), s.When.Format("-0700"))
}

// Clean is a name or an address without characters that a line of a commit may not hold, and
// without those that git strips at its ends.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '<' || r == '>' {
			return -1
		}
		return r
	}, s)
	return strings.Trim(s, " .,:;\"'\\")
}
