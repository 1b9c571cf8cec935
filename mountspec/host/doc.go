// Package host decides on the grants to a manifest: it compares the requests of a
// workspace's author with the grants by the owner of the machine.
//
// It knows the host configuration, the registry of workspaces beside it,
// and how an address or a path leads to a manifest, the manifests it refers
// to, and the place where the bytes lie. It promises:
//
//   - A manifest is never authority. Its id must be the requested address,
//     its owner the registered one, and each of its requests to the host
//     (credentials, buckets, directories, other owners' manifests) is met
//     only if the configuration grants it to that owner.
//   - A registered manifest, and every file it refers to, is the one that
//     was registered, byte for byte, until Accept takes the change. One that
//     was fetched must name as its storage the place that it was fetched from.
//   - A manifest that is not registered gets its own directory, public
//     endpoints to read from, and the secrets named on the command line.
//   - There is no second choice: a refusal is an *Error with the problem,
//     its place and advice, and nothing else is tried in its place.
//   - Resolving reads manifests. It opens no store, asks no network and
//     reveals no secret. Remote manifests are fetched when they are
//     registered and when they are accepted, through Options.Open.
//
// One use:
//
//	cfg, err := host.LoadConfig(host.LoadOptions{Lookup: os.LookupEnv})
//	r, err := host.NewResolver(host.Options{Config: cfg, Lookup: os.LookupEnv, Audit: log})
//	got, err := r.Resolve(ctx, "@acme/marketing-ops", host.ResolveOptions{})
//	for _, s := range got.Explain { fmt.Println(s) }
//
// Registered are: an entry of "workspaces" in the configuration, an entry
// of the registry file, and for one mount a path together with Trust.
// The search path and ~/.agentproto/workspaces.json only find manifests; a
// clone that calls itself @acme/ops and lies there is not acme's.
package host
