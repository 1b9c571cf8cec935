// Package template publishes the files of a workspace, and begins new workspaces from those
// of another (AIP-34, publish).
//
// It promises that only files that were shown before leave: none that the manifest excludes,
// no secrets, and none of the host or of another workspace that is mounted below;
// and that a bundle, or a new workspace, exists as a whole or not at all.
//
//	plan, err := template.Look(ctx, host, address)
//	file, sum, err := plan.Publish(ctx)
//
//	begun, err := template.Begin(ctx, host, template.Options{From: "@acme/starter", Dir: "/srv/notes", ID: id, OwnerID: owner})
package template
