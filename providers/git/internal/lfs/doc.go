// Package lfs speaks with the side of a git server that has large files (Git LFS), and keeps the
// objects that the server does not have yet.
//
// It knows pointers, the Batch API with the basic transfer, and a directory of
// objects that are named by their hash. It does not know which files of a
// repository are meant, nor where the API is: Options.Find says that, and no file
// of a repository does (.lfsconfig is not read).
//
//	c := lfs.New(lfs.Options{Find: find})
//	p, ok := lfs.Parse(blob)
//	body, err := c.Open(ctx, p, 0, p.Size)
//	err = c.Upload(ctx, "refs/heads/main", pointers, open, func(lfs.Pointer) {})
//
// The API is asked with the header that Find gives. Its answers lead to other servers, to which
// only the headers in the answer are sent. Each request, and each redirect of one, passes
// Options.Transport. A download may be redirected, without the answer's header if that is another
// server; an upload is not.
//
// A whole object is compared with its hash while it is read. A part has the length that was asked
// for, and a caller that joins parts compares the whole.
package lfs
