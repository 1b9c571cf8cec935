// Package inotify tells which names of a tree of directories changed. It knows
// inotify(7) and names; what lies under a name, and what a change of it means, is for
// the user to find out.
//
//	w := inotify.New(user, inotify.Options{Root: fd, RootDir: 1, Now: time.Now})
//	w.Start()
//	defer w.Close()
//	w.Add(dir, "/proc/self/fd/7")
//
// It uses the system calls, because fsnotify adds watches by path, where a directory
// may have been swapped for a link, and does not pass on which events were lost. Linux
// has nothing else for this that an unprivileged daemon may use.
//
// # Directories
//
// A directory is called by the number that the user gave it. Each has a watch of its
// own, by Add. A goroutine with low priority walks the tree, so that directories that
// the user was never asked for get one too: it calls Visit for each, and pauses while
// requests are under way. When the kernel has lost events, the whole tree is walked
// once more to compare every name with the disk; until then Current is false.
//
// Where the kernel gives no more watches, Add is refused for a while, longer each time,
// and the user is told once. The first success walks the tree anew.
//
// # Batches
//
// What belongs together is reported together: a second goroutine collects events for
// batchDelay, and hands the user a Batch with one mask for each name. A walk reports by
// the masks Found and Rescan.
//
// # Own changes
//
// inotify does not say who changed a name. Own remembers for a short time what the user
// did itself, so that a report of that, and of nothing else, need not be looked into;
// and it keeps what was seen of a name from being entered once a change of the user's
// own has overtaken it.
package inotify
