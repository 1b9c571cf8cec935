// Package inotify reports which names of a tree of directories changed. It knows inotify(7) and
// names; the user finds out which file is at a name, and how it differs.
//
//	w := inotify.New(user, inotify.Options{Root: fd, RootDir: 1, Now: time.Now})
//	w.Start()
//	defer w.Close()
//	w.Add(dir, "/proc/self/fd/7")
//
// It uses the system calls, because fsnotify adds watches by path, where a directory may have
// been swapped for a link, and does not pass on which events were lost. Linux has no other
// interface for this that an unprivileged daemon may use.
//
// # Directories
//
// The user gives each directory a number. Each directory has a watch of its own, by Add. A
// goroutine with low priority walks the tree, so that directories that no request has reached
// get one too: it calls Visit for each, and pauses while requests are under way. When the
// kernel has lost events, the whole tree is walked once more to compare every name with the
// disk; until then Current is false.
//
// Where the kernel gives no more watches, Add is refused for a while, longer each time, and the
// user is told once. The first success walks the tree anew.
//
// # Batches
//
// Related events are reported together: a second goroutine collects events for batchDelay, and
// hands the user a Batch with one mask for each name. A walk reports by the masks Found and
// Rescan.
//
// # Own changes
//
// inotify does not say which process changed a name. Own remembers the user's own changes for a
// short time, so that a report of these alone need not be looked into; and it keeps the result
// of a look from being entered once a change of the user's own has overtaken it.
package inotify
