package providers

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// JSON strings are Unicode, names are bytes. A name that is valid UTF-8 and does not begin with
// the mark below is written as it is, any other in hexadecimal after the mark.
const hexMark = "\\x:"

func quoteBytes(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, hexMark) {
		return s
	}
	return hexMark + hex.EncodeToString([]byte(s))
}

func unquoteBytes(s string) (string, error) {
	digits, marked := strings.CutPrefix(s, hexMark)
	if !marked {
		return s, nil
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return "", fmt.Errorf("%q is not a quoted name: %w", s, ErrInvalid)
	}
	return string(b), nil
}
