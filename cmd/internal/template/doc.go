// Package template publishes the files of a workspace, and begins new workspaces from those
// of another (AIP-34, publish).
//
// It promises that nothing leaves but what was shown before: not what the manifest excludes,
// nor secrets, nor what belongs to the host or to another workspace that is mounted below;
// and that a bundle, or a new workspace, is there as a whole or not at all.
//
//	plan, err := template.Look(ctx, host, address)
//	file, sum, err := plan.Publish(ctx)
//
//	begun, err := template.Begin(ctx, host, template.Options{From: "@acme/starter", Dir: "/srv/notes", ID: id, OwnerID: owner})
package template
