// Package exactjson is encoding/json for values whose strings are bytes: file names need not be
// UTF-8, and encoding/json would replace invalid bytes by U+FFFD, so that one name becomes that
// of another file.
//
// A byte that is not part of UTF-8 is written as U+0000 and its two hexadecimal digits: the
// name w\xff is "w\u0000ff". Any other string is written as encoding/json does. No name,
// program argument or environment variable can hold a U+0000, so a reader that does not know
// this form takes such a name for no other file's: the system refuses it.
//
//	data, err := exactjson.Marshal(list)
//	err = exactjson.Unmarshal(data, &list)
package exactjson

import (
	"bytes"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Marshal is json.Marshal.
func Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil || isExact(data) {
		return data, err
	}
	return json.Marshal(Escape(v))
}

// MarshalIndent is json.MarshalIndent.
func MarshalIndent(v any, prefix, indent string) ([]byte, error) {
	data, err := json.MarshalIndent(v, prefix, indent)
	if err != nil || isExact(data) {
		return data, err
	}
	return json.MarshalIndent(Escape(v), prefix, indent)
}

// isExact reports whether no string needs escaping: encoding/json writes \ufffd for a byte that
// is not UTF-8, and the character itself where a string has it. Searching the text is much
// cheaper than walking through each value.
func isExact(data []byte) bool {
	return !bytes.Contains(data, []byte(`\ufffd`)) && !bytes.Contains(data, []byte(`\u0000`))
}

// Unmarshal is json.Unmarshal.
func Unmarshal(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil || !bytes.Contains(data, []byte(`\u0000`)) {
		return err
	}
	return Unescape(v)
}

// Read is d.Decode(v).
func Read(d *json.Decoder, v any) error {
	if err := d.Decode(v); err != nil {
		return err
	}
	return Unescape(v)
}

// Escape is v with its strings in their written form, for another encoder. It shares values
// without such strings with v.
func Escape[T any](v T) T {
	_ = each(reflect.ValueOf(&v).Elem(), func(s string) (string, error) { return escape(s), nil })
	return v
}

// Unescape restores the strings of the value at v, after another decoder has read it.
func Unescape(v any) error { return each(reflect.ValueOf(v).Elem(), unescape) }

// Visible is a text for a person, with bytes that are not UTF-8 as in quoted Go strings: w\xff.
func Visible(s string) string { return replaced(s, `\x`, false) }

const mark = "\x00"

func escape(s string) string { return replaced(s, mark, true) }

// replaced is s with a mark and digits for each byte that is not UTF-8, and if zero for U+0000,
// to tell it from a mark.
func replaced(s, mark string, zero bool) string {
	if utf8.ValidString(s) && !(zero && strings.Contains(s, "\x00")) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 || r == 0 && zero {
			b.WriteString(mark + hex.EncodeToString([]byte(s[:1])))
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func unescape(s string) (string, error) {
	pieces := strings.Split(s, mark)
	for i, p := range pieces[1:] {
		c, err := hex.DecodeString(p[:min(2, len(p))])
		if err != nil || len(c) == 0 {
			return "", misread(s)
		}
		pieces[i+1] = string(c) + p[2:]
	}
	meant := strings.Join(pieces, "")
	if escape(meant) != s { // each name has one form only
		return "", misread(s)
	}
	return meant, nil
}

func misread(s string) error {
	return fmt.Errorf("%q is no name: U+0000 stands before the two digits of a byte that is not UTF-8", s)
}

// each replaces the strings of a value that encoding/json writes. It changes no shared data:
// the targets of pointers, and the content of slices and maps, are copied.
func each(v reflect.Value, f func(string) (string, error)) error {
	if !mayHold(v.Type()) {
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		s, err := f(v.String())
		v.SetString(s)
		return err
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); !field.IsExported() && (!field.Anonymous || field.Type.Kind() != reflect.Struct) {
				continue
			}
			if err := each(v.Field(i), f); err != nil {
				return err
			}
		}
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		c := reflect.New(v.Elem().Type())
		c.Elem().Set(v.Elem())
		if err := each(c.Elem(), f); err != nil {
			return err
		}
		if v.Kind() == reflect.Interface {
			c = c.Elem()
		}
		v.Set(c)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && !v.IsNil() {
			c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(c, v)
			v.Set(c)
		}
		for i := range v.Len() {
			if err := each(v.Index(i), f); err != nil {
				return err
			}
		}
	case reflect.Map:
		if v.IsNil() {
			return nil
		}
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			pair := [2]reflect.Value{reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()}
			for i, is := range []reflect.Value{it.Key(), it.Value()} {
				pair[i].Set(is)
				if err := each(pair[i], f); err != nil {
					return err
				}
			}
			c.SetMapIndex(pair[0], pair[1])
		}
		v.Set(c)
	}
	return nil
}

var (
	ownJSON = reflect.TypeFor[json.Marshaler]()
	ownText = reflect.TypeFor[encoding.TextMarshaler]()
)

// mayHold reports whether a value of a type may hold strings that encoding/json writes: numbers
// have none, and a type with its own marshaling handles its own.
func mayHold(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Pointer:
		if !mayHold(t.Elem()) {
			return false
		}
	case reflect.String, reflect.Struct, reflect.Map, reflect.Interface:
	default:
		return false
	}
	if t.Kind() == reflect.Interface {
		return true
	}
	p := reflect.PointerTo(t)
	return !p.Implements(ownJSON) && !p.Implements(ownText)
}
