// Package s3 is a provider whose bytes lie in a bucket that speaks S3.
//
// It knows the protocol, through AWS's SDK, and how a tree of POSIX names lies
// in a flat bucket. It promises what the service keeps: at Open it tries on a
// scratch key which conditions the service honours, and Capabilities say so.
//
//	driver, err := registry.Select("self-bucket", providers.Capabilities{})
//	p, err := driver.Open(ctx, providers.Settings{
//		Config: map[string]string{"kind": "s3", "bucket": "b", "endpoint": "http://127.0.0.1:9000"},
//		Credentials: reveal, // knows access_key_id and secret_access_key
//	})
//
// # Objects
//
// A file is one object under the configured prefix plus Locator.Key, so that a
// bucket which others filled is a tree at once, and what is written here is
// plain to others. A directory is whatever has keys below it, or a marker: an
// object without content whose key ends in a slash, as s3fs and the AWS
// console make it. Mkdir makes markers; a directory that only Write made goes
// with its last entry.
//
// A bucket can hold the object "a" beside keys "a/...". The file keeps the
// name, because one HEAD must be enough to describe it; the listing shows the
// directory as "a%2F". A name that ends in "%2F" itself has that ending twice,
// so no two entries share a name, and both can be read and deleted.
// A name that would mean another that way cannot be made
// (Capabilities.Names).
//
// No key is made that services read in different ways: with an empty segment,
// "." or "..", NUL, or what is no UTF-8. Where such keys are, they are listed
// and can be read and deleted. MinIO lists no directory beside a file; there a
// LIST comes before each creation, so that none gets hidden that way. A root
// has no name, so Open refuses a prefix that is an object or has one above it.
//
// Below ".wsmount/" lies what wsmount keeps for itself: the scratch keys of the
// probe, and hints. It is not listed, not found and not written.
//
// # Metadata
//
// Attributes are s3fs's: x-amz-meta-mode (decimal, with the type), -uid, -gid,
// -mtime (seconds, with nanoseconds behind a point). A symbolic link is an
// object whose mode says so and whose content is the target. rclone's octal
// modes and GeeseFS's links (--symlink-target) are read as well. Extended
// attributes are x-amz-meta-xattr, see xattr.go. All metadata of an object have
// 2 KiB: some 1300 bytes of one attribute, fewer of many (Fits). Other
// metadata are Info.Metadata; a value that a header cannot carry is written as
// encoded words (RFC 2047). The operation id is x-amz-meta-wsmount-op.
//
// A listing has no metadata, and asking for each entry would cost a request
// each. So ListComplete is false: an object of which nothing else is known
// passes for a file without attributes.
//
// # Hints
//
// What was once learnt of an object, by writing it or by a HEAD or GET, need not
// be asked again as long as its version is the one that the listing shows: ETag,
// size and second of the change. The answer to a PUT does not tell that second;
// then any counts from two before the request to two after the answer, by the
// service's clock. A directory of a listing that is not recursive has no
// version, so there its marker's hint counts as it is. A hint has no room for
// extended attributes and metadata of others, and a listing loses the latter
// anyway: of those it has 16 bits of a hash, which are Info.Untold.
//
// Hints are in memory, a million at most, of 60 to 115 bytes each, and in
// sidecars, so that a mount on a fresh machine has them too. A sidecar is an
// object ".wsmount/hints/<time>-<random>", never changed, of some 21 bytes for
// each hint: a line that names the format, and what hintfile.go says, gzipped.
// Keys are in it as hashes of 64 bits, and ETags of 32. All are read at Open,
// in the background; the first listing waits for them, for five seconds at
// most. To load some by directory would save memory for large buckets and cost
// each listing a GET.
//
// Changes are written five seconds after the first, or when there are a
// thousand, and for at most three seconds by Close: never by the call that made
// them. Of 32 sidecars, if they have an eighth of the bytes of the largest, or
// of 256, one is made: first that is written, then those that are in it are
// deleted. So a reader finds a sidecar gone, if anything, and lists again; and
// two mounts that do this at once leave two sidecars of the same hints. When a
// listing shows versions that nobody knows, the sidecars of others are looked
// for again, once a minute at most. Deletions are hints as well, so that
// sidecars do not grow with what is gone; of what others delete, hints stay
// until there are a million.
//
// A hint is never needed. A sidecar that is damaged or newer than this program
// is left alone, with a line in the log; what cannot be written is learnt again
// later. A provider that was opened for reading writes none. Other tools see
// some small objects below one prefix, and may delete them at any time.
//
// A HEAD for what no hint knows needs a reason. Up to eight objects of a page
// cost little, and are asked for at once. Of more, the three smallest are, since
// links are small: if one has a mode or is a link, a program like s3fs wrote the
// bucket, and the rest is asked for too, 32 at a time. Else they are as they
// seem. Either is remembered, so a version is asked for once.
//
// # Versions
//
// A version is the ETag, the time of the change in whole seconds (HEAD knows
// no finer) and the size. The answer to a PUT has no time, which matches any.
// Guards compare ETags alone, as the service does. A change of attributes is a
// copy onto itself: in a service that ignores the conditions of COPY, it is a
// multipart copy, and its ETag is no MD5 any more. A copy keeps neither
// tags nor access lists nor storage class.
//
// In a bucket with versioning, ReadOptions.Past finds what a key had: a GET of the present
// comes first, then a LIST of the versions of that key, of which the newest with that
// ETag, size and time counts, whatever was made or deleted since. It needs
// s3:ListBucketVersions and s3:GetObjectVersion. Whether the bucket has versioning is
// asked once (s3:GetBucketVersioning; if that is refused, the LIST will tell), and a bucket
// without, or one that does not let its versions be listed, is not asked again for ten
// minutes.
//
// # Headers
//
// Content-Type, Content-Encoding, Content-Language, Content-Disposition, Cache-Control
// and Expires are metadata under the names that providers.HeaderMetadata begins, so a
// caller that hands metadata back keeps them. A file that is written without a type
// gets that of its name, from a table that is the same on every machine. A type that
// says nothing (application/octet-stream) is not told, nor is a value sent again that
// a request cannot have.
//
// # Costs
//
// Each request costs money, so a verb sends as few as its promise needs: Stat
// of a file is one HEAD, a page of List one LIST, and HEADs for what is new in
// it as said above, Read one GET, Write one PUT. Hints cost a GET for each
// sidecar at Open, whose LIST is also the one for the bucket itself, a PUT for
// each thousand changes, and a LIST and some DELETEs now and then.
// A Stat that finds no file asks a LIST whether there is a directory. A HEAD that
// is refused has no text, so a LIST says why: what passes must not look like what
// stays. No
// request is repeated by the SDK: whoever calls knows what a repetition means.
// The exceptions are one renewal of credentials that the service refused, and
// AWS's 409 for conditional writes that met each other.
//
// # Integrity
//
// A PUT says the MD5 of its body ahead (Content-MD5), which every service
// checks before it keeps anything; newer checksums, and those that trail the
// body, are refused by too many. So a body that can seek is read twice, a small
// one that cannot is kept in memory, and a large one goes out in parts. Parts
// are streamed, and their ETags compared with the MD5 of what was sent where
// the probe found that ETags are MD5s. The header is signed, the body is not.
//
// Directory buckets (S3 Express) list in no order and are not supported.
package s3
