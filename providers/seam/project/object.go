package project

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf16"
)

// object is a JSON object that keeps the order of its fields, and those that wsmount does not
// know.
type object []field

type field struct {
	key   string
	value json.RawMessage
}

var errNoObject = errors.New("it is not a JSON object")

// UnmarshalJSON implements json.Unmarshaler. Of fields of one name the last counts.
func (o *object) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return errors.Join(errNoObject, err)
	}
	*o = nil
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		o.set(key.(string), value)
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(text(f.key))
		b.WriteByte(':')
		b.Write(f.value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (o object) get(key string) json.RawMessage {
	for _, f := range o {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

// text is the string at a key, "" if there is none.
func (o object) text(key string) (s string, err error) {
	if value := o.get(key); value != nil {
		if err = json.Unmarshal(value, &s); err != nil {
			err = fmt.Errorf("%s is no text", key)
		}
	}
	return s, err
}

func (o *object) set(key string, value json.RawMessage) {
	for i := range *o {
		if (*o)[i].key == key {
			(*o)[i].value = value
			return
		}
	}
	*o = append(*o, field{key, value})
}

// text is a JSON string in ASCII alone, as agentm writes it.
func text(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded
	var out bytes.Buffer
	for _, r := range string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))) {
		switch {
		case r < 0x7f:
			out.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		}
	}
	return out.Bytes()
}

// indented is how agentm writes a file.
func indented(o object) (string, error) {
	compact, err := o.MarshalJSON()
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = json.Indent(&b, compact, "", "  ")
	return b.String() + "\n", err
}
