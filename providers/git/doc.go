// Package git is a provider whose bytes are the files of a branch in a git
// repository, at a server that speaks git over HTTP or SSH, or at a git daemon.
//
// It knows git's objects, references and protocol, and promises what the
// contract of package providers asks of a repository: whole revisions, commits
// that stay here until they are pushed, fetches that change nothing until they
// are adopted. It decides nothing: when to commit, as whom, when to push, and
// what to do about a conflict is the caller's.
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
//	HEAD                         names the branch that we are on
//	refs/heads/BRANCH            of that branch the head: what reads show
//	refs/remotes/origin/BRANCH   where the branch was at the server when we last heard
//	refs/wsmount/left/COMMIT     a revision that a pull or a forced push left behind
//	objects/pack/                what was fetched, and a small pack for each commit
//	wsmount/                     what git has no place for: sizes, outcomes, files being made,
//	                             what a server said of pushes and pull requests, and
//	                             content in LFS that it has not got
//
// go-git is used for the protocol alone. It is never asked to change the
// repository: its storage writes references in place and syncs nothing. Objects
// are safe on the disk before a reference names them, and a reference before the
// verb that moved it returns. No object is ever removed.
//
// # Partial clones
//
// A server that filters is asked for commits and trees alone (git-partial-clone,
// blob:none), unless Options.Clone is CloneFull; any other gives all. The clone is there
// then, and blobs come by their ids over the same protocol. A head of few files comes
// whole before that. A listing needs the sizes of all files in the directory, which
// only blobs tell: it asks for those that are missing in one request, and for no more
// files at once than can be waited for. What somebody waits for goes first and together;
// a blob is asked for once, however many wait for it. With CloneAuto and CloneFull
// batches bring the rest in the background: what is below directories that were looked
// at, the rest of the head from the root down, and what only the history has, until
// nothing is missing and the clone is like any other. CloneAuto stops when mostAhead is here, both
// when the disk has little room. With CloneBlobless nothing comes that nobody needs.
//
// What cannot come is an error of reading or listing, ErrUnavailable with the server's
// reason, and is asked for again by the next who needs it. Nothing else of a clone needs
// what it is without: a push leaves out what came from the server, and so do commits,
// and packing. A merge by lines asks for the three contents.
//
// Batches are safe on the disk, one by one, before anybody sees them, so a crash loses
// the one that was under way. Git is told by the configuration and by marks beside the
// packs; in the tree's .git the program is told of a remote that does not exist, since
// it could put nothing there that it fetched. Who shares packs says whether they are
// without blobs.
//
// # Tree
//
// Names, content and links are the repository's, byte for byte; of what
// .gitattributes asks for nothing is done but filter=lfs (see below), and merge=union
// where commits are made anew. Of attributes there is only whether a file may be
// executed. A directory is there as long as something is in it. A submodule is
// a directory without entries, in which nothing can be made and which is neither moved
// nor removed ([providers.Submoduler]). Not shown, and left
// as they are, are entries that no file system here could show: ".", "..", names
// over 255 bytes, and whatever some system takes for ".git". That name cannot be
// written either: no server would take it.
//
// A version is the id of the content and what kind of entry it is, so the same
// content has the same version wherever and whenever it is. Sizes come from the
// index of a pack (see package odb), never from inflating content.
//
// # LFS
//
// A file goes through LFS if .gitattributes gives its path filter=lfs, as for git-lfs:
// the text of a pointer anywhere else is the file. Such a file shows what its pointer
// leads to: size and hash are the pointer's, and the content is asked of the server
// when it is read, in the ranges that are read. What was committed raw there is shown
// as it is. Where the API is follows from the URL, or over SSH from what the server
// answers to git-lfs-authenticate, and over git:// there is none; .lfsconfig is not read. Credentials are for the API,
// and what its answers lead to gets what they say (package lfs).
//
// Whether the server offers LFS is asked when the first such file is to be shown or
// committed, so before one has a size, and holds for the life of the clone, for sizes
// are remembered elsewhere. 404, 405, 410, 501 and what is no answer of the API mean no:
// then pointers are files like others. A server that refuses us does offer it.
// Content that does not come (the object is not there, its place is not granted, it is
// not what the pointer says) is an error of reading, EIO with the reason; the size stays.
//
// A new or changed file is committed as a pointer, byte for byte that of git-lfs, and
// its content is kept in wsmount/lfs, safe before the commit is made, until a push has
// brought the commit to the server; that of a commit which a pull left behind stays. A
// push sends objects first, and without them no commit. What has the same content keeps
// its pointer as it is, and what is empty has none. Content is not committed raw that
// should have been a pointer: where the server does not offer LFS, or nobody can say
// yet, the change is refused with ErrUnsupported, and so is the text of a pointer in
// place of content. MaxSize does not hold for content in LFS.
//
// A renamed file shows what it has shown: between a name with the filter and one
// without, it is made content or pointer. A set that would have other files show
// something else, by changing .gitattributes or the name of a directory, is refused. When
// others have done that, Differences has those files. Files that go through LFS are
// Opaque and, like pointers, never merged by lines.
//
// Locks of LFS, and transfers other than basic, are not known.
//
// # Branches
//
// Beside the tracked branch there can be others of our own, which are pushed to
// the server under the same name. Start goes to one: it writes where the branch
// begins, and then HEAD, so after a crash either nothing or all of it happened. A
// branch that was pushed is gone on from, never rewritten, until the tracked one
// has all of it. One that is merged, or that the server deleted after all was
// pushed, loses its name here; a commit that nothing else has then is kept under
// refs/wsmount/left. Pull requests are opened at the server's API (package hub).
//
// # The git program
//
// Inspect shows a .git to the git program, in which it finds packs, references and
// an index of the working copy, and can change nothing. The index says of all that
// is not known to have changed that it has not (package index), so git status
// costs what has changed. Filters are switched off there, so of a file in LFS that has
// changed git compares the content with the pointer. Where .git leads is named for what a person should do
// who is refused: git puts that name in front of its refusals.
//
// # Outcomes
//
// A commit is made when the head's reference moves. Before that, its operation
// and its result are written to wsmount/outcomes, so that the question what
// became of it can be answered after a crash: each line says from where to where
// the head was to go, and one from where the head did not go on came to nothing.
//
// # Archive
//
// What was committed and never pushed can be read without the remote, of a clone that is not open
// (Driver.Archive): what a branch has that neither the remote's branches have, as far as we heard,
// nor the last push that it took.
//
// # Remote
//
// Over SSH a server is believed by the files of known hosts alone (package shell).
// Over git:// nobody proves anything, and nothing is encrypted (package plain): so no
// credentials are taken, there is no LFS, and a daemon that takes no pushes is noted
// as one that refused the branch. Over both each session is a connection of its own.
// Learning that nothing has changed is one request. A fetch asks for the objects
// that are not here; a push sends those that the server does not say it has,
// found from the difference between the trees and not from the history of the
// repository. A push that is refused, or whose answer got lost, asks where the
// branch is now: that alone tells a lost race from a refusal.
package git
