package memoryserver

import (
	"bytes"
	"context"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory/wire"
)

func unsupported(q wire.Request) error {
	return &providers.Error{Op: q.Method, Locator: q.Locator, Kind: providers.ErrUnsupported}
}

// with runs a verb of an ability that p announces.
func with[A any](p providers.Provider, q wire.Request, verb func(A) (any, error)) (any, error) {
	ability, ok := providers.As[A](p)
	if !ok {
		return nil, unsupported(q)
	}
	return verb(ability)
}

func callAbility(ctx context.Context, p providers.Provider, q wire.Request, in wire.Incoming) (any, error) {
	switch q.Method {
	case providers.MethodCopy:
		return with(p, q, func(p providers.Copier) (any, error) {
			return given(in, func(o providers.CopyOptions) (providers.Info, error) { return p.Copy(ctx, q.Locator, q.To, o) })
		})
	case providers.MethodMove:
		return with(p, q, func(p providers.Mover) (any, error) {
			return given(in, func(o providers.MoveOptions) (providers.Info, error) { return p.Move(ctx, q.Locator, q.To, o) })
		})
	case providers.MethodSetAttr:
		return with(p, q, func(p providers.AttrSetter) (any, error) {
			return given(in, func(o providers.SetAttrOptions) (providers.Info, error) { return p.SetAttr(ctx, q.Locator, o) })
		})
	case providers.MethodHead:
		return with(p, q, func(p providers.Committer) (any, error) {
			return given(in, func(wire.Nothing) (providers.Revision, error) { return p.Head(ctx) })
		})
	case providers.MethodCommit:
		return with(p, q, func(p providers.Committer) (any, error) {
			return given(in, func(c wire.CommitArgs) (providers.CommitResult, error) { return p.Commit(ctx, setOf(c)) })
		})
	}
	return callRemote(ctx, p, q, in)
}

// setOf is the set with its content.
func setOf(c wire.CommitArgs) providers.ChangeSet {
	for i, content := range c.Bodies {
		c.Set.Changes[i].Body = providers.Body{Reader: bytes.NewReader(content), Size: int64(len(content))}
	}
	return c.Set
}

// callRemote runs the verbs of revisions.
func callRemote(ctx context.Context, p providers.Provider, q wire.Request, in wire.Incoming) (any, error) {
	switch q.Method {
	case providers.MethodAt:
		return with(p, q, func(p providers.Snapshotter) (any, error) {
			return given(in, func(r providers.Revision) (providers.Capabilities, error) { return pastCapabilities(ctx, p, r) })
		})
	case providers.MethodFind:
		return with(p, q, func(p providers.Snapshotter) (any, error) {
			return given(in, func(name string) (providers.Found, error) { return p.Find(ctx, name) })
		})
	case providers.MethodPush:
		return with(p, q, func(p providers.Pusher) (any, error) {
			return given(in, func(o providers.PushOptions) (providers.PushResult, error) { return p.Push(ctx, o) })
		})
	case providers.MethodFetch:
		return with(p, q, func(p providers.Syncer) (any, error) {
			return given(in, func(wire.Nothing) (providers.Revision, error) { return p.Fetch(ctx) })
		})
	case providers.MethodAdopt:
		return with(p, q, func(p providers.Syncer) (any, error) {
			return given(in, func(r wire.Revisions) (wire.Nothing, error) { return wire.Nothing{}, p.Adopt(ctx, r.A, r.B) })
		})
	case providers.MethodBase:
		return with(p, q, func(p providers.Syncer) (any, error) {
			return given(in, func(r wire.Revisions) (providers.Revision, error) { return p.Base(ctx, r.A, r.B) })
		})
	case providers.MethodDiffer:
		return with(p, q, func(p providers.Differ) (any, error) {
			return given(in, func(r wire.Revisions) ([]providers.Difference, error) { return p.Differences(ctx, r.A, r.B) })
		})
	}
	return nil, unsupported(q)
}

// pastCapabilities is all that a client needs of a revision: it names the
// revision with each call.
func pastCapabilities(ctx context.Context, s providers.Snapshotter, r providers.Revision) (providers.Capabilities, error) {
	past, err := s.At(ctx, r)
	if err != nil {
		return providers.Capabilities{}, err
	}
	return past.Capabilities(), past.Close()
}
