// Package bucket is the common part of the providers of object stores: a Provider over a Store,
// which is one bucket of one service.
//
// It knows how a tree of POSIX names lies in flat keys, how attributes lie in metadata, and the
// seam's promises about conditions, parts and repeated operations. It knows no service, no SDK
// and no credentials: those are the Store's, with the errors of the service and the check that
// its answers are genuine. Differences between services are data, Service and Honours.
//
//	p, err := bucket.Open(ctx, store, bucket.Options{Service: traits, Bucket: "b", Prefix: "team/", Logger: log, Now: time.Now})
//
// A Store carries requests as they are given, and decides nothing. In particular:
//
//   - ETag is whatever names a version, of a service with generations those: the Provider
//     compares it and hands it back.
//   - Conditions are the seam's, and come only where Honours has them. Complete gets the
//     condition and the metadata that Begin got: some services take them early, some late.
//   - A service whose listings have metadata says so (Service.Tells), and needs no attribute
//     index but for directories. One that changes metadata without a copy is a Patcher.
//   - A listing that cannot begin behind a key, or near one alone (Service.ListStart), goes on by
//     the service's tokens. One that is not in the order of keys is refused when it is
//     recursive and more than a page, so that each directory is listed by itself.
//   - Names of metadata are lower-case letters, digits, "-", "_" and "."; a service that
//     takes fewer has them encoded by its Store, which leaves room for that in
//     Service.Metadata. Headers that it does not have are metadata there as well.
//   - Objects that can be read and not be written as a whole (appended ones, pages) are
//     the Store's to refuse, as ErrUnsupported; their ETag can say so, since it comes back.
//     Directories that a service has of its own are objects here whose keys end in a
//     slash, without content.
//
// # Objects
//
// A file is one object under the configured prefix plus Locator.Key, so that a bucket which
// others filled is a tree at once, and objects that wsmount wrote are plain to others. A
// directory is a prefix with keys below it, or a marker: an object without content whose key ends
// in a slash, as s3fs and the consoles of services make it. Mkdir makes markers; a directory that
// only Write made goes with its last entry.
//
// A bucket can hold the object "a" beside keys "a/...". The file keeps the
// name, because one HEAD must be enough to describe it; the listing shows the
// directory as "a%2F". A name that ends in "%2F" itself has that ending twice,
// so no two entries share a name, and both can be read and deleted.
// A name that would mean another that way cannot be made
// (Capabilities.Names).
//
// No key is made that services read in different ways: with an empty segment, "." or "..", NUL,
// or invalid UTF-8. Where such keys exist, they are listed and can be read and deleted. Where a
// service lists no directory beside a file of its name (Honours.Hides), a LIST comes before each
// creation, so that none gets hidden that way. A root has no name, so Open refuses a prefix that
// is an object or has one above it.
//
// wsmount's own objects, scratch keys and the attribute index, lie below ".wsmount/". That prefix
// is not listed, not found and not written.
//
// # Metadata
//
// Attributes are s3fs's: mode (decimal, with the type), uid, gid, mtime (seconds, with
// nanoseconds behind a point). A symbolic link is an object whose mode says so and whose content
// is the target. A service whose programs use other words gets those (Service.Words): dates,
// blobfuse2's links, the names of Google's tools. The attributes of rclone, GeeseFS, blobfuse2,
// AzCopy, gcsfuse and gcloud are read on every service: words.go has the list. Extended
// attributes are xattr, see xattr.go. A service limits the bytes of all metadata of an object; of
// S3's 2 KiB, one attribute can have some 1300, many have less (Fits). Other metadata are
// Info.Metadata; a value that a header cannot carry is written as encoded words (RFC 2047). The
// operation id is wsmount-op.
//
// # Attribute index
//
// Most listings have no metadata, and asking for each entry would cost a request each. So
// ListComplete is false for those: an object known from a listing alone passes for a file without
// attributes.
//
// Attributes that were once learnt, by writing the object or by a HEAD or GET, need not be asked
// again as long as the listing shows the same version: ETag, size and second of the change. A
// record of the index holds them. The answer to a change may not tell that second; then any
// counts from two before the request to two after the answer, by the service's clock. A directory
// of a listing that is not recursive has no version, so its marker's record counts as it is. A
// record has no room for extended attributes and metadata of others, and a listing loses the
// latter anyway: of those it has 16 bits of a hash, which are Info.Untold.
//
// Records are in memory, a million at most, of 60 to 115 bytes each, and in segments, so that a
// mount on a fresh machine has them too. A segment is an object ".wsmount/hints/<time>-<random>",
// never changed, of some 21 bytes for each record: a line that names the format, then the gzipped
// records (index_segment.go). Keys are in it as hashes of 64 bits, and ETags of 32. All segments
// are read at Open, in the background; the first listing waits for them, for five seconds at
// most. To load some by directory would save memory for large buckets and cost each listing a
// GET.
//
// Changes are written five seconds after the first, or when there are a thousand, and for at most
// ten seconds by Close: never by the call that made them. Segments are merged when there are 32
// and those besides the largest have an eighth of its bytes, or when there are 256: the new
// segment is written first, then the old ones are deleted. So a reader finds a segment gone, if
// anything, and lists again; and two mounts that do this at once leave two segments of the same
// records. When a listing shows versions without a record, the segments of other mounts are
// looked for again, once a minute at most. Deletions are records as well, so that segments do not
// grow with deleted objects; records of objects that others delete stay until there are a
// million.
//
// A record is never needed. A segment that is damaged or newer than this program is left alone,
// with a line in the log; records that cannot be written are learnt again later. A provider that
// was opened for reading writes none. Other tools see some small objects below one prefix, and
// may delete them at any time.
//
// A HEAD for an object without a record needs a reason. Up to eight objects of a page cost
// little, and are asked for at once. Of more, the three smallest are, since links are small: if
// one has a mode or is a link, a program like s3fs wrote the bucket, and the rest is asked for
// too, 32 at a time. Else all pass for plain files. Either result is remembered, so a version is
// asked for once.
//
// # Versions
//
// A version is the ETag, the time of the change in whole seconds (HEAD knows
// no finer) and the size. An answer that has no time matches any.
// Guards compare ETags alone, as services do. Without a Patcher a change of attributes
// is a copy onto itself, in parts where Copy does not honour conditions. A copy keeps no
// access lists.
//
// # Headers
//
// Content-Type, Content-Encoding, Content-Language, Content-Disposition, Cache-Control and
// Expires are metadata under the names that providers.HeaderMetadata begins, so a caller that
// hands metadata back keeps them. So are the storage class and the tags, where a store tells
// them: each store documents its own exceptions. A class whose content has to be restored before
// it is read is refused for writes. A file that is written without a type gets that of its name,
// from a table that is the same on every machine. A type that says nothing
// (application/octet-stream) is not told, nor is a value sent again that a request cannot have.
//
// # Costs
//
// Each request costs money, so a verb sends as few as its promise needs: Stat of a file is one
// HEAD, a page of List one LIST, and HEADs for its new objects as said above, Read one GET, Write
// one PUT. The index costs a GET for each segment at Open, whose LIST is also the one for the
// bucket itself, a PUT for each thousand changes, and a LIST and some DELETEs now and then. A
// Stat that finds no file asks a LIST whether there is a directory. A refusal without a reason,
// as of a HEAD, is followed by a LIST that tells the reason: a temporary failure must not look
// like a permanent one.
//
// # Integrity
//
// A Put gives the MD5 of its body ahead, so that the service accepts no other content. So a body
// that can seek is read twice, a small one that cannot is kept in memory, and a large one goes
// out in parts. Parts are streamed, and compared with the checksums that the service returns, if
// any.
package bucket
