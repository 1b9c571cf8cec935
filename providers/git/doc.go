// Package git is a provider whose bytes are the files of a branch in a git
// repository, at a server that speaks git over HTTP or SSH, or at a git daemon.
//
// It knows git's objects, references and protocol, and keeps the contract of package providers
// for a repository: whole revisions, commits that stay local until they are pushed, fetches that
// change nothing until they are adopted. It decides nothing: the caller decides when to commit,
// as which author, when to push, and how a conflict ends.
//
//	p, err := git.Open(ctx, git.Options{URL: "https://github.com/acme/ops", Dir: dir, Credentials: reveal})
//	result, err := p.Commit(ctx, providers.ChangeSet{Changes: changes, Message: "…", Author: who})
//	pushed, err := p.Push(ctx, providers.PushOptions{})
//
// # Repository
//
// Below Dir is a bare repository of one branch, without tags, index or work tree,
// so nothing can be checked out wrongly. The git program may look at it at any
// time, and its locks are honoured:
//
//	HEAD                         names the current branch
//	refs/heads/BRANCH            the head of that branch, which reads show
//	refs/remotes/origin/BRANCH   the server's branch, as of the last answer
//	refs/wsmount/left/COMMIT     a revision that a pull or a forced push left behind
//	objects/pack/                fetched packs, and a small pack for each commit
//	wsmount/                     state that git has no place for: sizes, outcomes, files being
//	                             made, a server's answers to pushes and pull requests, and
//	                             content in LFS that the server has not got
//
// go-git is used for the protocol alone. It is never asked to change the
// repository: its storage writes references in place and syncs nothing. Objects
// are safe on the disk before a reference names them, and a reference before the
// verb that moved it returns. No object is ever removed.
//
// # Partial clones
//
// A server that filters is asked for commits and trees alone (git-partial-clone, blob:none),
// unless Options.Clone is CloneFull; any other gives all. Then the clone is usable, and blobs come
// by their ids over the same protocol (package partial). A head of few files comes whole before
// that. A listing needs the sizes of all files in the directory, which only blobs tell: it asks
// for the missing ones in one request, and for no more files at once than a caller can wait for.
// Blobs that a caller waits for go first and together; a blob is asked for once, however many
// callers wait for it. With CloneAuto and CloneFull batches bring the rest in the background:
// blobs below directories that a program has looked at, the rest of the head from the root down,
// and those of the history alone, until nothing is missing and the clone is like any other.
// CloneAuto stops when 4 GiB are local, both when the disk has little room. With CloneBlobless
// blobs come only on demand.
//
// A blob that cannot come is an error of reading or listing, ErrUnavailable with the server's
// reason, and is asked for again by the next caller that needs it. Nothing else needs the missing
// blobs: a push leaves out objects that came from the server, and so do commits, and packing. A
// merge by lines asks for the three contents.
//
// Batches are safe on the disk, one by one, before a reader sees them, so a crash loses the one
// that was under way. Git learns by the configuration and by marks beside the packs that blobs
// are missing; the tree's .git names a remote that does not exist, since the git program could
// not store fetched objects in it. Clones that share packs mark those without blobs.
//
// # Tree
//
// Names, content and links are the repository's, byte for byte; of .gitattributes (package
// attributes) only filter=lfs has an effect (see below), and merge=union where commits are made
// anew (package rebase). The only attribute of a file is whether it may be executed. A directory
// exists as long as it has an entry. A submodule is a directory without entries, in which nothing
// can be made and which is neither moved nor removed ([providers.Submoduler]). Not shown, and left
// as they are, are entries that no local file system could show: ".", "..", names over 255 bytes,
// and any name that some system takes for ".git". That name cannot be written either: no server
// would take it.
//
// A version is the id of the content and the kind of entry, so the same content has the same
// version in every place and revision. Sizes come from the index of a pack (see package odb),
// never from inflating content.
//
// # LFS
//
// A file goes through LFS if .gitattributes gives its path filter=lfs, as for git-lfs: the text
// of a pointer anywhere else is the file. Such a file shows the content of its pointer: size and
// hash are the pointer's, and the content is asked of the server when it is read, in the ranges
// that are read. Content that was committed raw under the filter is shown as it is. The API's
// place follows from the URL, or over SSH from the server's answer to git-lfs-authenticate; over
// git:// there is none, and .lfsconfig is not read. Credentials are for the API; requests to the
// places it names carry the headers that it gives for them (package lfs).
//
// Whether the server offers LFS is asked when the first such file is to be shown or committed, so
// before one has a size; the answer holds for the life of the clone, since callers remember
// sizes. 404, 405, 410, 501 and an answer that is not of the API mean no: then pointers are files
// like others. A server that refuses the request does offer LFS. Content that does not come (the
// server lacks the object or refuses its place, or it does not match the pointer) is an error of
// reading, EIO with the reason; the size stays.
//
// A new or changed file is committed as a pointer, byte for byte that of git-lfs, and its content
// is kept in wsmount/lfs, safe before the commit is made, until a push has brought the commit to
// the server; that of a commit which a pull left behind stays. A push sends objects first, and no
// commit before them. A file with unchanged content keeps its pointer as it is, and an empty one
// has none. Content that should be a pointer is not committed raw: where the server does not
// offer LFS, or that is not known yet, the change is refused with ErrUnsupported, and so is the
// text of a pointer in place of content. MaxSize does not hold for content in LFS.
//
// A renamed file shows the same content as before: between a name with the filter and one
// without, it is made content or pointer. A set that would change the content shown by other
// files, by changing .gitattributes or the name of a directory, is refused. When other clones
// have done that, Differences has those files. Files that go through LFS are Opaque and, like
// pointers, never merged by lines.
//
// Locks of LFS, and transfers other than basic, are not known.
//
// # Branches
//
// Beside the tracked branch there can be others of our own, which are pushed to the server under
// the same name. Start switches to one: it writes the branch's first commit, and then HEAD, so a
// crash leaves all of it or nothing. A branch that was pushed is continued, never rewritten,
// until the tracked one has all of it. One that is merged, or that the server deleted after all
// was pushed, loses its local name; a commit that no other reference leads to is then kept under
// refs/wsmount/left. Pull requests are opened at the server's API (package hub).
//
// # The git program
//
// Inspect shows a .git to the git program, which finds packs, references and an index of the
// working copy in it, and can change nothing. The index marks every file as unchanged that is not
// known to have changed (package index), so the cost of git status grows with the changes.
// Filters are switched off in it, so git compares the content of a changed LFS file with the
// pointer. The target of .git has a name that tells a person the way to commit: git puts that
// name in front of its refusals.
//
// # Outcomes
//
// A commit is made when the head's reference moves. Before that, its operation and its result are
// written to wsmount/outcomes, so that its outcome can be told after a crash: each line has the
// head before and after, and came to nothing unless the next line, or the head itself, goes on
// from its second.
//
// # Archive
//
// Commits that were never pushed can be read without the remote, from a clone that is not open
// (Driver.Archive): those of a branch that neither the remote's branches have, as of the last
// answer, nor the last push of the branch that the remote took.
//
// # Remote
//
// Over SSH a server is believed by the files of known hosts alone (package shell). git:// has
// neither authentication nor encryption (package plain): so no credentials are taken, there is no
// LFS, and a daemon that takes no pushes is noted as one that refused the branch. Over both each
// session is a connection of its own. Learning that nothing has changed is one request. A fetch
// asks for the objects that are not local; a push sends those that the server does not name,
// found from the difference between the trees and not from the history of the repository. After a
// push that is refused, or whose answer got lost, the server is asked for the branch's commit:
// that alone tells a lost race from a refusal.
package git
