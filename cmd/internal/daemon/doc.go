// Package daemon is one running mount: the volumes of a resolved workspace, the
// FUSE front over them, the control API, the lifecycle bus, status, metrics and
// log, from the first check to the last request.
//
// It promises, in this order: nothing is mounted that the host did not grant, for it mounts only
// workspaces that mountspec/host resolved; the process is not dumpable, has no environment and no
// umask while it serves; two daemons never serve one working copy; every failure that a client saw
// is counted, kept in .wsmount/errors.log and shown by status; the status file in the state
// directory can be read without the daemon.
//
//	tree, err := daemon.Resolve(ctx, daemon.Request{Workspace: "@acme/ops", Mountpoint: "/mnt/ws"})
//	d, err := daemon.Start(ctx, tree, daemon.Options{})
//	err = d.Run(signals)
//
// A daemon ends when the tree is unmounted, by any process, or on a signal: then
// it unmounts, tries again while programs use the tree, and cuts them off when
// its time is over or a second signal comes.
package daemon
