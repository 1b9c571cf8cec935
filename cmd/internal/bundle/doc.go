// Package bundle packs the files of a workspace into one file for others, and
// unpacks it.
//
// A bundle is a tar archive. Its first member, wsmount-bundle.json, names the workspace
// and lists every directory, file and symbolic link by its path, with the size and the
// SHA-256 of each file; the members files/PATH follow in that order. Two bundles of the same
// files are the same bytes: entries are sorted, and have no owner, no time, and of the mode
// only whether it can be run.
//
// The package promises that
//
//   - files that stay on the machine are in no bundle that it writes, and it unpacks none with
//     such files: inventories of secrets, repositories of git, the control directory;
//   - a file in which a credential stands is not packed, but named and refused;
//   - unpacked files are as the list says, of no more than MaxBytes, in the directory: no
//     path and no symbolic link leads out of it.
//
// One use:
//
//	content, err := bundle.Collect(ctx, root, bundle.Options{Keep: keep})
//	sum, err := content.Write(ctx, w)
//
//	got, sum, err := bundle.Unpack(ctx, r, into)
package bundle
