package memory

import (
	"bufio"
	"encoding/gob"
	"errors"
	"io"

	"github.com/wsmount/wsmount/providers"
)

// A call travels as one HTTP request: gobs of a request and of the verb's own
// arguments, then the content of a Write; the answer is gobs of a reply and,
// unless it failed, of the verb's result, then the content of a Read. gob and
// not JSON, because names and metadata are any bytes; and one gob for each verb
// and not one for all, because what takes time is to learn the types.

// request is what every verb has.
type request struct {
	Method  providers.Method
	Clone   clone              // which provider of the server
	Past    providers.Revision // not "": its tree at this revision
	Locator providers.Locator
	To      providers.Locator
	Size    int64 // of the content that follows
}

// clone names a Repository of a server's Remote, and what it tracks.
type clone struct{ Name, Branch string }

// reply says whether a result follows.
type reply struct{ Failed *failure }

// The arguments and results of verbs that have several, or none.
type (
	nothing    struct{}
	revisions  struct{ A, B providers.Revision }
	commitArgs struct {
		Set    providers.ChangeSet
		Bodies [][]byte // of Set.Changes, whose own are empty
	}
)

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
	e := &providers.Error{Provider: name, Op: f.Op, Locator: f.Locator, Code: f.Code, Kind: kindNamed(f.Kind)}
	if f.Cause != "" {
		e.Err = errors.New(f.Cause)
	}
	return e
}

// kindNamed is the error of a kind of the table; ErrUnavailable for another.
func kindNamed(name string) error {
	if kind, ok := providers.KindNamed(name); ok {
		return kind.Err
	}
	return providers.ErrUnavailable
}

// send writes values.
func send(w io.Writer, values ...any) error {
	enc := gob.NewEncoder(w)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// incoming is values, and content behind them.
type incoming struct {
	values *gob.Decoder
	rest   *bufio.Reader // gob takes not a byte more than it needs of this
}

func newIncoming(r io.Reader) incoming {
	in := bufio.NewReader(r)
	return incoming{gob.NewDecoder(in), in}
}

// next is the next value, which the sender made of the same type.
func next[T any](in incoming) (v T, err error) {
	err = in.values.Decode(&v)
	return v, err
}
