// Package wire is the protocol of a memory provider in another process: the requests of a
// client, and the answers of a server.
package wire

import (
	"bufio"
	"encoding/gob"
	"errors"
	"io"

	"github.com/wsmount/wsmount/providers"
)

// Name is that of the provider in errors.
const Name = "memory"

// A call is sent as one HTTP request: gobs of a request and of the verb's own arguments, then
// the content of a Write; the answer is gobs of a reply and, unless it failed, of the verb's
// result, then the content of a Read. gob and not JSON, because names and metadata are any
// bytes; and one gob for each verb and not one for all, because most time is spent on learning
// the types.

// Request has the fields common to all verbs.
type Request struct {
	Method  providers.Method
	Clone   Clone              // which provider of the server
	Past    providers.Revision // not "": its tree at this revision
	Locator providers.Locator
	To      providers.Locator
	Size    int64 // of the content that follows
}

// Clone names a Repository of a server's Remote, and the branch that it tracks.
type Clone struct{ Name, Branch string }

// Reply says whether a result follows.
type Reply struct{ Failed *Failure }

// The arguments and results of verbs that have several, or none.
type (
	Nothing    struct{}
	Revisions  struct{ A, B providers.Revision }
	CommitArgs struct {
		Set    providers.ChangeSet
		Bodies [][]byte // of Set.Changes, whose own bodies are empty
	}
)

// MethodHello asks for Capabilities.
const MethodHello providers.Method = "hello"

// Failure is an error that keeps its kind.
type Failure struct {
	Op      providers.Method
	Locator providers.Locator
	Kind    string
	Code    string
	Cause   string
}

// Err is the error that f was made of.
func (f *Failure) Err() error {
	if f == nil {
		return nil
	}
	e := &providers.Error{Provider: Name, Op: f.Op, Locator: f.Locator, Code: f.Code, Kind: KindNamed(f.Kind)}
	if f.Cause != "" {
		e.Err = errors.New(f.Cause)
	}
	return e
}

// KindNamed is the error of a kind of the table; ErrUnavailable for another.
func KindNamed(name string) error {
	if kind, ok := providers.KindNamed(name); ok {
		return kind.Err
	}
	return providers.ErrUnavailable
}

// Send writes values.
func Send(w io.Writer, values ...any) error {
	enc := gob.NewEncoder(w)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// Incoming is a stream of values, with content after them.
type Incoming struct {
	values *gob.Decoder
	Rest   *bufio.Reader // gob takes not a byte more than it needs of this
}

// NewIncoming reads values.
func NewIncoming(r io.Reader) Incoming {
	in := bufio.NewReader(r)
	return Incoming{gob.NewDecoder(in), in}
}

// Next is the next value, which the sender made of the same type.
func Next[T any](in Incoming) (v T, err error) {
	err = in.values.Decode(&v)
	return v, err
}
