package memory

import (
	"encoding/gob"
	"errors"
	"io"

	"github.com/wsmount/wsmount/providers"
)

// A call travels as one HTTP request: a gob of a request, then the content of
// a Write; the answer is a gob of an answer, then the content of a Read. gob
// and not JSON, because names and metadata are any bytes.

// request has the arguments of any verb; Method says which are meant.
type request struct {
	Method  providers.Method
	Locator providers.Locator
	To      providers.Locator
	List    providers.ListOptions
	Read    providers.ReadOptions
	Write   providers.WriteOptions
	Size    int64 // of the content that follows
	Delete  providers.DeleteOptions
	Mkdir   providers.MkdirOptions
	Copy    providers.CopyOptions
	Move    providers.MoveOptions
	SetAttr providers.SetAttrOptions
	Commit  providers.ChangeSet
	Bodies  [][]byte // of Commit.Changes, whose own are empty
}

// answer has the results of any verb, or Failed.
type answer struct {
	Failed       *failure
	Capabilities providers.Capabilities
	Info         providers.Info
	Page         providers.Page
	Revision     providers.Revision
	Commit       providers.CommitResult
}

// methodHello asks for Capabilities.
const methodHello providers.Method = "hello"

// failure is an error that keeps its kind.
type failure struct {
	Op      providers.Method
	Locator providers.Locator
	Kind    string
	Code    string
	Cause   string
}

func newFailure(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Kind: providers.KindOf(err).Name, Cause: err.Error()}
	var e *providers.Error
	if errors.As(err, &e) {
		f.Op, f.Locator, f.Code, f.Cause = e.Op, e.Locator, e.Code, ""
		if e.Err != nil {
			f.Cause = e.Err.Error()
		}
	}
	return f
}

// err is the error that f was made of.
func (f *failure) err() error {
	if f == nil {
		return nil
	}
	e := &providers.Error{Provider: name, Op: f.Op, Locator: f.Locator, Code: f.Code, Kind: providers.ErrUnavailable}
	if kind, ok := providers.KindNamed(f.Kind); ok {
		e.Kind = kind.Err
	}
	if f.Cause != "" {
		e.Err = errors.New(f.Cause)
	}
	return e
}

// send writes one value.
func send(w io.Writer, v any) error { return gob.NewEncoder(w).Encode(v) }

// byteReader lets the decoder take what it needs and leave the content.
type byteReader interface {
	io.Reader
	io.ByteReader
}

// receive reads one value and not a byte more.
func receive(r byteReader, v any) error { return gob.NewDecoder(r).Decode(v) }
