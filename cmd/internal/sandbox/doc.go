// Package sandbox runs a command where a SANDBOX.md block says (AIP-36), under
// bubblewrap (bwrap(1)).
//
// It knows the parts of the host that a command sees, and how it is started, watched and
// ended; its callers decide about the workspace, the right to run and the mounts. It promises
// that a command
//
//   - sees the mounts that it was given, /usr, a few files of /etc that no host
//     keeps a secret in, and nothing else of the host: no other file, process,
//     network, abstract socket, System V object, key or control group;
//   - has no capability and cannot get one: not by set-id programs, not in
//     a user namespace of its own;
//   - gets no descriptor but its standard ones, and of a regular file among these
//     only the bytes: a descriptor would let it open the file anew;
//   - on a terminal, gets one of its own with job control, never that of the caller,
//     which is as before when it has ended, without input that was typed for it;
//   - does not outlive this process, however that ends;
//   - ends with its own status, or 128 and the number of the signal that ended it.
//
// A Spec that cannot be kept is refused before the command is started: a place that would
// cover the system, a limit that this user cannot set. One use:
//
//	spec := sandbox.Spec{Command: []string{"make"}, Mounts: []sandbox.Mount{{At: "/workspace", Dir: root}}}
//	if err := spec.Check(); err != nil { ... }
//	res, err := sandbox.Run(ctx, spec)
//
// Each guard has a test in integration that tries to get past it.
package sandbox
