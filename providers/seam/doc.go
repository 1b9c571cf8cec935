// Package seam is the boundary between a memory engine and its files: seven verbs on names, on
// any storage.
//
// It knows text, names and the promises of a [Backend]. It knows no service, and its verbs no
// directory of this machine: a name is a [Locator], which cannot leave the backend's root and is
// no path, so that an engine cannot come to rely on one. Content is UTF-8 text and keeps every
// byte, line ends too.
//
// [New] makes a Backend of any storage:
//
//	b := seam.New(provider)
//	l, err := b.Resolve("projects", "atlas", "plan.md")
//	l, err = b.Write(ctx, l, "# Plan\n")
//	text, err := b.Read(ctx, l)
//
// Backends that are used by name are in a [Registry], from which [Registry.Select] takes the one
// that the configuration asks for. It never takes another: memory in a place that no program
// reads is lost. [Registry.Preview] tells beforehand what Select will do or refuse, in the same
// words.
//
//	b, err := all.Backends().Select(ctx, seam.ReadSettings(os.Getenv, nil), seam.Capabilities{Sync: true})
//
// # Errors
//
// A name that no backend may be asked for is an [InvalidLocatorError], content that is no text a
// [TextError]. All other errors are those of package providers: a missing entry is
// providers.ErrNotExist, which an InvalidLocatorError never is.
//
// # Safety
//
// A write is all or nothing for readers, and as durable as the storage promises. The last writer
// wins: content that was read before may be old by then. A [Conditional] writes only over the
// content that was read, and [Update] tries that until it holds. Promises beyond that are in
// [Capabilities].
package seam
