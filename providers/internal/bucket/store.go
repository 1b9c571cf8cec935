package bucket

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Store is a bucket of one service: objects under keys, each with content, metadata
// and headers. It knows no directories, and keeps no state of requests.
//
// Its errors are *Fault, those of the body that it was given, or the context's;
// anything else counts as no answer. A key that has no object is ErrNotExist, a condition that
// does not hold is ErrConflict. A Store gets only conditions that Honours names, and never IfDir.
// It repeats no request, but for a login and for an answer that decided nothing.
type Store interface {
	// Honours tells which conditions the service honours. It is asked once, before anything is
	// changed, and may try them below Scratch; own are wsmount's own keys.
	Honours(ctx context.Context, own Listing) (Honours, error)

	// Head describes an object.
	Head(ctx context.Context, key string) (Object, error)
	// Get opens the content of an object and describes the whole of it. A range that
	// begins behind the end is a Fault in doubt of RangeBeyond.
	Get(ctx context.Context, key string, want Range) (Object, io.ReadCloser, error)
	// Past is the id of the newest version that the key had and that matches, for
	// Range.ID. ErrNotExist when there is none; ErrPermission and ErrUnsupported, with
	// the reason, when that cannot be known.
	Past(ctx context.Context, key string, v providers.Version) (id string, err error)
	// List gives a page of keys.
	List(ctx context.Context, q Query) (Listing, error)

	// Put makes an object. The service refuses content that does not have body.MD5.
	Put(ctx context.Context, key string, body *Outgoing, m Making) (Object, error)
	// Copy makes an object, which may be from itself, with the content of from, if that
	// has its ETag still. It is of at most Service.Copy bytes.
	Copy(ctx context.Context, from Object, key string, m Making) (Object, error)
	// Delete removes an object. For a missing one it may return ErrNotExist.
	Delete(ctx context.Context, key string, c providers.Condition) error

	// Begin starts an upload in parts. A service that has no name for it gives "".
	Begin(ctx context.Context, key string, m Making) (id string, err error)
	// Part sends a part. Its content is compared when it has been sent, with Part.MD5.
	Part(ctx context.Context, u Upload, n int, body *Outgoing) (Part, error)
	// CopyPart takes a part from a range of an object, if that has its ETag still.
	CopyPart(ctx context.Context, u Upload, n int, from Object, offset, size int64) (Part, error)
	// Complete makes the object of parts, in their order, in one step. ErrConflict also
	// when the upload is gone.
	Complete(ctx context.Context, u Upload, parts []Part, m Making) (Object, error)
	// Abort frees the parts of an upload. One that is gone is freed.
	Abort(ctx context.Context, u Upload) error
	// AbortBefore frees uploads to keys with a prefix that began before a time, and
	// says how many.
	AbortBefore(ctx context.Context, prefix string, before time.Time) (int, error)
}

// Patcher is a Store whose objects can get other metadata and headers without a copy.
type Patcher interface {
	// Patch replaces metadata and headers of an object, which are those of was, on a condition
	// that may be Unconditional.
	Patch(ctx context.Context, was Object, m Making) (Object, error)
}

// Honours tells which conditions and names a service honours. A condition that is false, the
// Provider checks itself, by a look before the change.
type Honours struct {
	Create   bool // Put with IfAbsent
	Replace  bool // Put with IfVersion
	Complete bool // Complete with both
	Copy     bool // Copy with a condition on its target
	Delete   bool // Delete with IfVersion, also of a missing object

	// Encodes: listings carry every name; else only those that XML can carry.
	Encodes bool
	// Hides: where a file is beside a directory of its name, a listing has the file alone. A
	// change that would hide a directory looks for one first.
	Hides bool
}

// Service has the traits that all buckets of a service share.
type Service struct {
	Name    string // in errors and configurations: "s3"
	People  string // as people call it
	Missing string // its code for a bucket that is not there
	// Tells: Items of objects have Metadata and Headers, so that no index need know of
	// them. TellsDirs: with Tells, groups have those of their markers.
	Tells, TellsDirs bool
	ListStart        ListStart // besides where a page has ended (Query.Token)
	Lines            bool      // keys have no line breaks
	Slashes          bool      // a backslash is a slash, and a dot at the end of a name may be dropped
	Words            Words

	Keys   []string // of a configuration, beside those of every bucket
	Mastra []string // Mastra's own words for some of them; nil: it has no provider of the service

	Key      int   // bytes of a key
	Metadata int   // bytes of all names and values
	Put      int64 // bytes in one Put
	Copy     int64 // bytes in one Copy
	Size     int64 // bytes of an object
	Parts    providers.PartLimits
}

// Object is an object as a service describes it. For one that was just made the service may leave
// out Key, Size, Modified, Metadata and Headers.
type Object struct {
	Key      string
	Size     int64
	ETag     string    // without quotes; of a service with generations, those
	Modified time.Time // zero: not told
	MD5      string    // of the content, in hexadecimal; "": not told
	Metadata map[string]string
	Headers  Headers
	Answered time.Time // by the service's clock; zero: not told
}

// Range is the part of an object that is asked for; zero is all of the current version.
type Range struct {
	Offset, Length int64  // Length 0: to the end
	ETag           string // else ErrConflict; "": any
	ID             string // from Past; "": the current version
}

// Header is the range as an HTTP header; "" for all.
func (r Range) Header() string {
	switch last := r.Offset + r.Length - 1; {
	case r.Length > 0 && last >= r.Offset: // and not past the last number there is
		return fmt.Sprintf("bytes=%d-%d", r.Offset, last)
	case r.Length > 0 || r.Offset > 0:
		return fmt.Sprintf("bytes=%d-", r.Offset)
	}
	return ""
}

// WholeSize is the size of the whole in the answer to a range, as its Content-Range says it.
func WholeSize(told string) (int64, error) {
	_, total, ok := strings.Cut(told, "/")
	size, err := strconv.ParseInt(total, 10, 64)
	if !ok || err != nil {
		return 0, &Fault{Kind: providers.ErrCorrupt, Err: fmt.Errorf("the answer to a range says %q of it", told)}
	}
	return size, nil
}

// ListStart is where a listing can begin, by Query.After.
type ListStart uint8

const (
	Nowhere   ListStart = iota // Query.After cannot be used
	BehindKey                  // behind any key
	NearKey                    // near a key, and it goes on by Query.Token alone
)

// Query asks for keys.
type Query struct {
	Prefix  string
	Grouped bool   // keys with a slash behind the prefix come as one item, up to the slash
	After   string // keys behind this one, with NearKey itself too, or more before it; "": from the first, or as Token says
	Token   string // Listing.Next of the page before; not with After
	Limit   int    // at most; 0: as the service likes
}

// Listing is a page of keys, in the order in which the service has them.
type Listing struct {
	Items    []Item
	Next     string
	More     bool
	Answered time.Time // as in Object
}

// Item is an object, or a group of keys.
type Item struct {
	Object
	IsDir bool // a group, which has only Key, and the fields of Service.TellsDirs
}

// Making has the metadata, headers and condition of an object to be made.
type Making struct {
	Metadata map[string]string
	Headers  Headers
	If       providers.Condition
}

// Upload is an upload in parts.
type Upload struct{ Key, ID string }

// Part is a part that the service has.
type Part struct {
	N    int
	ETag string
	MD5  string // "": not told
	Size int64
}
