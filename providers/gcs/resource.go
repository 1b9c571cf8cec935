package gcs

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// resource is an object as the JSON API describes it.
type resource struct {
	Kind               string
	Name               string
	Size               int64 `json:",string"`
	Generation         int64 `json:",string"`
	Metageneration     int64 `json:",string"`
	TimeCreated        time.Time
	MD5Hash            string
	ContentType        string
	CacheControl       string
	ContentDisposition string
	ContentEncoding    string
	ContentLanguage    string
	Metadata           map[string]string
}

func (resource) kind() string { return "storage#object" }

// resourceFields are what is asked for of an object.
const resourceFields = "kind,name,size,generation,metageneration,timeCreated,md5Hash,contentType,cacheControl,contentDisposition,contentEncoding,contentLanguage,metadata"

// metaExpires has the header that the service does not have.
const metaExpires = "wsmount-expires"

func etagOf(generation, metageneration int64) string {
	return strconv.FormatInt(generation, 10) + "." + strconv.FormatInt(metageneration, 10)
}

// object is what the resource says.
func (r *resource) object() (bucket.Object, error) {
	if r.Name == "" || r.Generation <= 0 || r.Metageneration <= 0 || r.Size < 0 {
		return bucket.Object{}, fmt.Errorf("%w: object %q of generation %d.%d and size %d", providers.ErrCorrupt, r.Name, r.Generation, r.Metageneration, r.Size)
	}
	o := bucket.Object{
		Key: r.Name, Size: r.Size, ETag: etagOf(r.Generation, r.Metageneration), Modified: r.TimeCreated, MD5: digest(r.MD5Hash),
		Headers: bucket.Headers{
			ContentType: r.ContentType, CacheControl: r.CacheControl, ContentDisposition: r.ContentDisposition,
			ContentEncoding: r.ContentEncoding, ContentLanguage: r.ContentLanguage,
		},
	}
	o.Metadata, o.Headers.Expires = cutExpires(r.Metadata)
	return o, nil
}

// digest is an MD5 in hexadecimal, from base64; "" if it is none.
func digest(base string) string {
	sum, err := base64.StdEncoding.DecodeString(base)
	if err != nil || len(sum) != 16 {
		return ""
	}
	return hex.EncodeToString(sum)
}

// cutExpires is metadata without the header that is there.
func cutExpires(metadata map[string]string) (rest map[string]string, expires string) {
	rest = map[string]string{}
	for name, value := range metadata {
		if name == metaExpires {
			expires = value
			continue
		}
		rest[name] = value
	}
	return rest, expires
}

// answered is when the service says that it answered; zero: it does not say.
func answered(answer *http.Response) time.Time {
	t, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return t
}

// fromHeaders is the object that a download is of.
func fromHeaders(key string, answer *http.Response) (bucket.Object, error) {
	h := answer.Header
	number := func(name string) int64 {
		n, err := strconv.ParseInt(h.Get(name), 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	r := resource{
		Name: key, Size: number("X-Goog-Stored-Content-Length"), Generation: number("X-Goog-Generation"), Metageneration: number("X-Goog-Metageneration"),
		ContentType: h.Get("Content-Type"), CacheControl: h.Get("Cache-Control"), ContentDisposition: h.Get("Content-Disposition"),
		ContentEncoding: h.Get("X-Goog-Stored-Content-Encoding"), ContentLanguage: h.Get("Content-Language"), Metadata: map[string]string{},
	}
	if r.ContentEncoding == "identity" {
		r.ContentEncoding = ""
	}
	if usualCaching[r.CacheControl] {
		r.CacheControl = ""
	}
	for name, values := range h {
		if rest, ok := strings.CutPrefix(name, "X-Goog-Meta-"); ok {
			r.Metadata[strings.ToLower(rest)] = strings.Join(values, ",")
		}
		if name != "X-Goog-Hash" {
			continue
		}
		for one := range strings.SplitSeq(strings.Join(values, ","), ",") {
			if sum, ok := strings.CutPrefix(strings.TrimSpace(one), "md5="); ok {
				r.MD5Hash = sum
			}
		}
	}
	o, err := r.object()
	o.Answered = answered(answer)
	return o, err
}

// usualCaching is what the service says of an answer whose object has nothing to say.
var usualCaching = map[string]bool{"private, max-age=0": true, "public, max-age=3600": true}

// described is the resource that an object is made with. A type is always said: without,
// a copy would keep all that its source has.
func described(m bucket.Making) map[string]any {
	d := map[string]any{}
	for name, value := range headers(m.Headers) {
		if value != "" {
			d[name] = value
		}
	}
	if m.Headers.ContentType == "" {
		d["contentType"] = "application/octet-stream"
	}
	d["metadata"] = metadata(m)
	return d
}

// headers are the fields of a resource that are headers.
func headers(h bucket.Headers) map[string]string {
	return map[string]string{
		"contentType": h.ContentType, "cacheControl": h.CacheControl, "contentDisposition": h.ContentDisposition,
		"contentEncoding": h.ContentEncoding, "contentLanguage": h.ContentLanguage,
	}
}

func metadata(m bucket.Making) map[string]any {
	all := map[string]any{}
	for name, value := range m.Metadata {
		all[name] = value
	}
	if m.Headers.Expires != "" {
		all[metaExpires] = m.Headers.Expires
	}
	return all
}

// changed is the patch that makes an object what m says: null takes away.
func changed(was bucket.Object, m bucket.Making) map[string]any {
	d := described(m)
	for name := range headers(m.Headers) {
		if d[name] == nil {
			d[name] = nil
		}
	}
	all := metadata(m)
	gone := func(name string) {
		if _, stays := all[name]; !stays {
			all[name] = nil
		}
	}
	for name := range was.Metadata {
		gone(name)
	}
	gone(metaExpires)
	d["metadata"] = all
	return d
}
