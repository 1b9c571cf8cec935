// Package gcs is a provider whose bytes lie in a bucket of Google Cloud Storage.
//
// It knows the service; how a tree lies in a bucket is package bucket's.
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
// All go through the transport that was given, to one origin. They are the JSON API's,
// but for the download: the JSON API gives content without the metadata of its object,
// and the XML API gives both with one request. No request is repeated, but once after a
// new login, and chunks: the client repeats nothing that it is not asked to.
//
// An upload says the MD5 of its body ahead, and the service keeps nothing else. Up to 8 MiB
// it is one request. What is larger, and does not come in parts, is a resumable upload: a
// request that begins it, and one for each 8 MiB, which is sent again for some seconds if it
// does not arrive. Its conditions are looked at in the end. One that breaks off has made
// nothing, and the service forgets it after a week. The service takes about one change of a
// name in a second, and refuses more as what passes.
//
// # Versions
//
// An ETag is generation and metageneration, as "1700000000000000.2": the content of a
// generation never changes, and its metadata change the metageneration. The service
// decides on both in every change, as it documents. At an endpoint that is not Google's,
// each kind of change is tried at Open, and what ignores a condition is refused. The time of
// a version is that of its generation, so attributes leave it alone; a download does not
// tell it.
//
// A version that the bucket keeps as noncurrent is found by its generation, with one
// request.
//
// # Parts
//
// An upload in parts has one object for each part, below ".wsmount/upload-<time>-<random>/",
// and compose makes the object of up to 32 of them; of more, it makes larger parts first.
// Parts are compared with their MD5, and a composed object has none. A part from a range
// of an object goes through this machine, as the service copies whole objects only. What
// an upload that broke off leaves, AbortBefore finds by its time.
//
// # Metadata
//
// Listings have metadata, those of directories' markers too. Empty folders of a bucket with a
// hierarchical namespace are none of its objects, and not seen.
//
// Attributes have the names of Google's tools, and mtime is a date beside, for rclone and for
// what is less than a second. A link is one for gcsfuse of any version: its target is the
// content, and metadata too unless it is too long or no ASCII.
//
// A storage class other than STANDARD is a header (storage-class). What is composed has
// that of the bucket, like the parts: those that are gone within a day should not be
// paid for a month.
//
// Changing metadata is a patch, without a copy. The service has no header Expires: it is
// metadata under the name wsmount-expires.
//
// # Credentials
//
// A token is signed here with the key of the service account, and the service takes it as
// it is: no other service is asked for one. The key's file is a secret of its fields, or
// of one that has it whole (credentials_file). A token can be given instead (token), which
// ends when its expiration says. "credentials: sdk" is for the host alone: it takes
// Google's application default credentials, which may ask the machine's metadata service.
package gcs
