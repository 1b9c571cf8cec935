package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

var errJSON = errors.New("it is not JSON")

// members calls f with the key of each member of a JSON object, and with the value as it is
// written. Values are skipped, not decoded, which is the caller's task: the text of a
// thousand manifests is not gone over for the few bytes beside each.
func members(data []byte, f func(key string, value []byte) error) error {
	i := space(data, 0)
	if at(data, i) != '{' {
		return errJSON
	}
	if i = space(data, i+1); at(data, i) == '}' {
		return end(data, i+1)
	}
	for {
		from, to := i, text(data, i)
		if i = space(data, to); to < 0 || at(data, i) != ':' {
			return errJSON
		}
		key, err := decodeText(data[from:to])
		if err != nil {
			return err
		}
		from = space(data, i+1)
		if to = value(data, from); to <= from {
			return errJSON
		}
		if err := f(key, data[from:to:to]); err != nil {
			return err
		}
		i = space(data, to)
		switch at(data, i) {
		case ',':
			i = space(data, i+1)
		case '}':
			return end(data, i+1)
		default:
			return errJSON
		}
	}
}

// decodeText decodes a string, of which few have anything to decode.
func decodeText(s []byte) (out string, err error) {
	if len(s) > 1 && s[0] == '"' && bytes.IndexByte(s, '\\') < 0 && utf8.Valid(s) {
		return string(s[1 : len(s)-1]), nil
	}
	err = json.Unmarshal(s, &out)
	return out, err
}

func end(data []byte, i int) error {
	if space(data, i) != len(data) {
		return errors.New("something follows it")
	}
	return nil
}

func at(data []byte, i int) byte {
	if i < 0 || i >= len(data) {
		return 0
	}
	return data[i]
}

// space is the end of the space at i.
func space(data []byte, i int) int {
	for c := at(data, i); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = at(data, i) {
		i++
	}
	return i
}

// value is the end of the value at i, or -1.
func value(data []byte, i int) int {
	switch at(data, i) {
	case '"':
		return text(data, i)
	case '{', '[':
	default:
		if n := bytes.IndexAny(data[min(i, len(data)):], ",]} \n\t\r"); n >= 0 {
			return i + n
		}
		return -1
	}
	for depth := 0; i >= 0 && i < len(data); {
		switch data[i] {
		case '"':
			i = text(data, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if i++; depth == 0 {
			return i
		}
	}
	return -1
}

// text is the end of the string at i, or -1.
func text(data []byte, i int) int {
	if at(data, i) != '"' {
		return -1
	}
	for i++; ; i++ {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		before := i
		for data[before-1] == '\\' {
			before--
		}
		if (i-before)%2 == 0 {
			return i + 1
		}
	}
}
