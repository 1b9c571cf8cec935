// Package s3 is a provider whose bytes lie in a bucket that speaks S3.
//
// It knows the protocol, through AWS's SDK; how a tree lies in a bucket is package bucket's. It
// promises only what the service keeps: at Open it tries on a scratch key which conditions the
// service honours, for its Capabilities.
//
//	driver, err := registry.Select("self-bucket", providers.Capabilities{})
//	p, err := driver.Open(ctx, providers.Settings{
//		Config: map[string]string{"kind": "s3", "bucket": "b", "endpoint": "http://127.0.0.1:9000"},
//		Credentials: reveal, // knows access_key_id and secret_access_key
//	})
//
// MinIO lists no directory beside a file; a service whose store is a file system cannot
// have both. Directory buckets (S3 Express) list in no order and are not supported.
//
// # Versions
//
// Some gateways report a new ETag before they send the new content. Where it is an MD5, content
// is compared with it (Info.Digest); else the old content passes for the new, and an update may
// be lost.
//
// The answer to a PUT has no time, which matches any. In a service that ignores the
// conditions of COPY, a change of attributes is a multipart copy, and its ETag is no MD5
// any more.
//
// In a bucket with versioning, ReadOptions.Past finds past versions of a key: a GET of the
// present one comes first, then a LIST of the versions of that key, of which the newest with
// that ETag, size and time counts, whatever was made or deleted since. It needs
// s3:ListBucketVersions and s3:GetObjectVersion. Whether the bucket has versioning is asked
// once (s3:GetBucketVersioning; if that is refused, the LIST will tell), and a bucket without,
// or one that does not let its versions be listed, is not asked again for ten minutes.
//
// # Requests
//
// No request is repeated by the SDK: only the caller knows whether repeating is safe. The
// exceptions are one renewal of credentials that the service refused, and AWS's 409 for
// concurrent conditional writes.
//
// A PUT sends the MD5 of its body ahead (Content-MD5), which every service checks before it
// stores anything; too many refuse newer checksums, and those that trail the body. The ETags of
// parts are compared with the MD5 of the bytes sent where the probe found that ETags are MD5s.
// The header is signed, the body is not.
//
// # Tags
//
// Tags are a header (tagging) of objects that have some, and cost another request
// (s3:GetObjectTagging). Where they may not be read, or not be set (s3:PutObjectTagging),
// content is written without, which is logged once.
package s3
