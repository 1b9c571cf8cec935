// Package gcs is a provider whose bytes lie in a bucket of Google Cloud Storage.
//
// It knows the service; package bucket maps a tree to a bucket.
//
//	p, err := driver.Open(ctx, providers.Settings{
//		Config: map[string]string{"kind": "gcs", "bucket": "b"},
//		Credentials: reveal, // knows client_email and private_key, as a key file of a service account has them
//	})
//
// The protocol is Google's generated client's, which adds 4.7 MB to the program; the client
// for people, cloud.google.com/go/storage, would add 23.6 MB and 75 modules.
//
// # Requests
//
// All go through the transport that was given, to one origin. They are the JSON API's, but for
// the download: the JSON API gives content without the metadata of its object, and the XML API
// gives both with one request. No request is repeated, but once after a new login, and chunks:
// the client repeats only on request.
//
// An upload sends the MD5 of its body ahead, and the service stores no other content. Up to 8
// MiB it is one request. A larger one, unless sent in parts, is a resumable upload: a request
// that begins it, and one for each 8 MiB, which is sent again for some seconds if it does not
// arrive. Its conditions are checked at the end. One that breaks off has made nothing, and the
// service forgets it after a week. The service accepts about one change of a name in a second,
// and refuses more with an error that passes.
//
// # Versions
//
// An ETag is generation and metageneration, as "1700000000000000.2": the content of a
// generation never changes, and its metadata change the metageneration. The service decides on
// both in every change, as it documents. At an endpoint that is not Google's, each kind of
// change is tried at Open, and a service that ignores a condition is refused. The time of a
// version is that of its generation, so attributes do not change it; a download does not tell
// it.
//
// A version that the bucket keeps as noncurrent is found by its generation, with one
// request.
//
// # Parts
//
// An upload in parts has one object for each part, below ".wsmount/upload-<time>-<random>/",
// and compose makes the object of up to 32 of them; of more, it makes larger parts first. Parts
// are compared with their MD5, and a composed object has none. A part from a range of an object
// goes through this machine, as the service copies whole objects only. AbortBefore finds the
// parts of an upload that broke off by its time.
//
// # Metadata
//
// Listings have metadata, those of directories' markers too. Empty folders of a bucket with a
// hierarchical namespace are not objects, and not seen.
//
// Attributes have the names of Google's tools, and mtime is also a date, for rclone and for
// fractions of a second. A link is one for gcsfuse of any version: its target is the content,
// and metadata too unless it is too long or no ASCII.
//
// A storage class other than STANDARD is a header (storage-class). A composed object has that
// of the bucket, like the parts: parts are gone within a day, and should not be billed for a
// month.
//
// Changing metadata is a patch, without a copy. The service has no header Expires: it is
// metadata under the name wsmount-expires.
//
// # Credentials
//
// A token is signed locally with the key of the service account, and the service accepts it
// directly: no other service is asked for one. The key file is given as a secret with its
// fields, or with one field that has it whole (credentials_file). A token can be given instead
// (token), which ends at its expiration. "credentials: sdk" is for the host alone: it takes
// Google's application default credentials, which may ask the machine's metadata service.
package gcs
