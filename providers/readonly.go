package providers

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
)

// mutating are the abilities with at least one method that changes the backend and no read that
// other verbs lack.
const mutating = AbilityCopy | AbilityMove | AbilityAttr | AbilityParts | AbilityPush

// ReadOnlyOptions are the reason for refusals, and their log.
type ReadOnlyOptions struct {
	Reason string       // in every refusal: "storage.read_only of the manifest"; "": none
	Logger *slog.Logger // one line per refusal; nil: silent
}

// ReadOnlyProvider refuses every change before the provider inside is reached.
// It announces no abilities that only change; a Committer stays one for its
// Head, and its Commit is refused.
type ReadOnlyProvider struct {
	*wrapped
	opts    ReadOnlyOptions
	refused atomic.Int64
}

// ReadOnly is p for reading only, with the code storage_read_only (AIP-35
// adapter guide). Pulling from a remote is still allowed.
func ReadOnly(p Provider, opts ReadOnlyOptions) *ReadOnlyProvider {
	r := &ReadOnlyProvider{opts: opts}
	r.wrapped = newWrapped(p, WrapOptions{Around: r.around, Hide: mutating, ReadOnly: true})
	return r
}

// Refused is how many calls were refused so far.
func (r *ReadOnlyProvider) Refused() int64 { return r.refused.Load() }

func (r *ReadOnlyProvider) around(ctx context.Context, c *Call, next func(context.Context) error) error {
	if !c.Method.Mutates() {
		return next(ctx)
	}
	r.refused.Add(1)
	err := &Error{Op: c.Method, Locator: c.Locator, Kind: ErrReadOnly, Code: KindOf(ErrReadOnly).Code}
	if r.opts.Reason != "" {
		err.Err = errors.New(r.opts.Reason)
	}
	if r.opts.Logger != nil {
		r.opts.Logger.WarnContext(ctx, "change refused", "error", err)
	}
	return err
}
