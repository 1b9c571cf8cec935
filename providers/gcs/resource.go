package gcs

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/storage/v1"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// resourceFields are the requested fields of an object.
const resourceFields = "kind,name,size,generation,metageneration,timeCreated,md5Hash,contentType,cacheControl,contentDisposition,contentEncoding,contentLanguage,storageClass,metadata"

// metaExpires is the metadata name for the header Expires, which the service does not have.
const metaExpires = "wsmount-expires"

// objectOf is the object of a resource.
func objectOf(r *storage.Object) (bucket.Object, error) {
	if err := isKind(r.Kind, "storage#object"); err != nil {
		return bucket.Object{}, err
	}
	if r.Name == "" || r.Generation <= 0 || r.Metageneration <= 0 || int64(r.Size) < 0 {
		return bucket.Object{}, fmt.Errorf("%w: object %q of generation %d.%d and size %d", providers.ErrCorrupt, r.Name, r.Generation, r.Metageneration, r.Size)
	}
	o := bucket.Object{
		Key: r.Name, Size: int64(r.Size), ETag: etagOf(r.Generation, r.Metageneration), Answered: answered(r.ServerResponse.Header), Metadata: map[string]string{},
		Headers: bucket.Headers{
			ContentType: r.ContentType, CacheControl: r.CacheControl, ContentDisposition: r.ContentDisposition,
			ContentEncoding: r.ContentEncoding, ContentLanguage: r.ContentLanguage, Expires: r.Metadata[metaExpires], StorageClass: classToKeep(r.StorageClass),
		},
	}
	o.Modified, _ = time.Parse(time.RFC3339, r.TimeCreated)
	if sum, err := base64.StdEncoding.DecodeString(r.Md5Hash); err == nil {
		o.MD5 = hex.EncodeToString(sum)
	}
	maps.Copy(o.Metadata, r.Metadata)
	delete(o.Metadata, metaExpires)
	return o, nil
}

// answered is the time of an answer by the service's clock; zero: not told.
func answered(h http.Header) time.Time {
	t, _ := http.ParseTime(h.Get("Date"))
	return t
}

// ofDownload is the object that a download is of.
func ofDownload(key string, h http.Header) (bucket.Object, error) {
	number := func(name string) int64 {
		n, err := strconv.ParseInt(h.Get("X-Goog-"+name), 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	r := &storage.Object{
		Kind: "storage#object", Name: key, Size: uint64(number("Stored-Content-Length")), Generation: number("Generation"), Metageneration: number("Metageneration"),
		ContentType: h.Get("Content-Type"), CacheControl: h.Get("Cache-Control"), ContentDisposition: h.Get("Content-Disposition"),
		ContentEncoding: h.Get("X-Goog-Stored-Content-Encoding"), ContentLanguage: h.Get("Content-Language"), Metadata: map[string]string{},
		StorageClass:   h.Get("X-Goog-Storage-Class"),
		ServerResponse: googleapi.ServerResponse{Header: h},
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
	}
	for one := range strings.SplitSeq(strings.Join(h.Values("X-Goog-Hash"), ","), ",") {
		if sum, ok := strings.CutPrefix(strings.TrimSpace(one), "md5="); ok {
			r.Md5Hash = sum
		}
	}
	return objectOf(r)
}

// usualCaching are the service's Cache-Control headers for objects without one of their own.
var usualCaching = map[string]bool{"private, max-age=0": true, "public, max-age=3600": true}

// described is the resource with which an object is made. It always has a type: without, a copy
// would keep all metadata of its source.
func described(m bucket.Making) *storage.Object {
	h := m.Headers
	r := &storage.Object{
		ContentType: cmp.Or(h.ContentType, "application/octet-stream"), CacheControl: h.CacheControl, ContentDisposition: h.ContentDisposition,
		ContentEncoding: h.ContentEncoding, ContentLanguage: h.ContentLanguage, Metadata: map[string]string{},
		StorageClass: h.StorageClass,
	}
	maps.Copy(r.Metadata, m.Metadata)
	if h.Expires != "" {
		r.Metadata[metaExpires] = h.Expires
	}
	return r
}

// classToKeep is the storage class for a copy or new content: every class can be read at once.
// "" for STANDARD, the default of most buckets.
func classToKeep(class string) string {
	if class == "STANDARD" {
		return ""
	}
	return class
}

// composed is described for an object made of others, which has their class.
func composed(m bucket.Making) *storage.Object {
	m.Headers.StorageClass = ""
	return described(m)
}

// changed is the patch that gives an object the metadata of m: null removes one. No patch
// changes the class.
func changed(was bucket.Object, m bucket.Making) *storage.Object {
	r := composed(m)
	r.ForceSendFields = []string{"Metadata"}
	for name, value := range map[string]string{
		"CacheControl": r.CacheControl, "ContentDisposition": r.ContentDisposition, "ContentEncoding": r.ContentEncoding, "ContentLanguage": r.ContentLanguage,
	} {
		if value == "" {
			r.NullFields = append(r.NullFields, name)
		}
	}
	had := map[string]string{metaExpires: ""}
	maps.Copy(had, was.Metadata)
	for name := range had {
		if _, stays := r.Metadata[name]; !stays {
			r.NullFields = append(r.NullFields, "Metadata."+name)
		}
	}
	return r
}
