package providers

import (
	"context"
	"iter"
	"time"
)

// ability finds T at the wrapped provider, unless it or the wrapper does not announce it. It is
// called inside the wrapper's function, which so sees the call also when it fails.
func ability[T any](w *wrapped, m Method, l Locator) (T, error) {
	_, announced := As[T](Provider(w))
	t, ok := As[T](w.inner)
	if !announced || !ok {
		var none T
		return none, &Error{Op: m, Locator: l, Kind: ErrUnsupported}
	}
	return t, nil
}

func (w *wrapped) Copy(ctx context.Context, from, to Locator, opts CopyOptions) (Info, error) {
	return via(ctx, w, &Call{Method: MethodCopy, Locator: from, To: to}, func(ctx context.Context) (Info, error) {
		p, err := ability[Copier](w, MethodCopy, from)
		if err != nil {
			return Info{}, err
		}
		return p.Copy(ctx, from, to, opts)
	})
}

func (w *wrapped) Move(ctx context.Context, from, to Locator, opts MoveOptions) (Info, error) {
	return via(ctx, w, &Call{Method: MethodMove, Locator: from, To: to}, func(ctx context.Context) (Info, error) {
		p, err := ability[Mover](w, MethodMove, from)
		if err != nil {
			return Info{}, err
		}
		return p.Move(ctx, from, to, opts)
	})
}

func (w *wrapped) SetAttr(ctx context.Context, l Locator, opts SetAttrOptions) (Info, error) {
	return via(ctx, w, &Call{Method: MethodSetAttr, Locator: l}, func(ctx context.Context) (Info, error) {
		p, err := ability[AttrSetter](w, MethodSetAttr, l)
		if err != nil {
			return Info{}, err
		}
		return p.SetAttr(ctx, l, opts)
	})
}

// Fits does no work, so no wrapper sees it.
func (w *wrapped) Fits(attr Attr, metadata map[string]string) error {
	p, err := ability[AttrSetter](w, MethodSetAttr, Locator{})
	if err != nil {
		return err
	}
	return p.Fits(attr, metadata)
}

// Inspect reads local state, so no wrapper sees it.
func (w *wrapped) Inspect(root string, covered []string, work Changes) Inspection {
	p, err := ability[Inspector](w, MethodStat, Locator{})
	if err != nil {
		return Inspection{}
	}
	return p.Inspect(root, covered, work)
}

// Submodule reads local state, so no wrapper sees it.
func (w *wrapped) Submodule(ctx context.Context, l Locator) (Locator, bool, error) {
	p, err := ability[Submoduler](w, MethodStat, l)
	if err != nil {
		return Locator{}, false, err
	}
	return p.Submodule(ctx, l)
}

// Watch stays inside the wrapper's function for as long as it lasts.
func (w *wrapped) Watch(ctx context.Context, l Locator) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		err := w.run(ctx, &Call{Method: MethodWatch, Locator: l}, func(ctx context.Context) error {
			p, err := ability[Watcher](w, MethodWatch, l)
			if err != nil {
				return err
			}
			for event, err := range p.Watch(ctx, l) {
				if err != nil {
					return err
				}
				if !yield(event, nil) {
					yield = nil
					return nil
				}
			}
			return nil
		})
		if err != nil && yield != nil {
			yield(Event{}, err)
		}
	}
}

func (w *wrapped) Head(ctx context.Context) (Revision, error) {
	return via(ctx, w, &Call{Method: MethodHead}, func(ctx context.Context) (Revision, error) {
		p, err := ability[Committer](w, MethodHead, Locator{})
		if err != nil {
			return "", err
		}
		return p.Head(ctx)
	})
}

func (w *wrapped) Commit(ctx context.Context, set ChangeSet) (CommitResult, error) {
	return via(ctx, w, &Call{Method: MethodCommit}, func(ctx context.Context) (CommitResult, error) {
		p, err := ability[Committer](w, MethodCommit, Locator{})
		if err != nil {
			return CommitResult{}, err
		}
		return p.Commit(ctx, set)
	})
}

// At wraps its result, so that reads of the past do not bypass the wrapper.
func (w *wrapped) At(ctx context.Context, r Revision) (Provider, error) {
	past, err := via(ctx, w, &Call{Method: MethodAt}, func(ctx context.Context) (Provider, error) {
		p, err := ability[Snapshotter](w, MethodAt, Locator{})
		if err != nil {
			return nil, err
		}
		return p.At(ctx, r)
	})
	if err != nil {
		return nil, err
	}
	return newWrapped(past, w.opts), nil
}

func (w *wrapped) Find(ctx context.Context, name string) (Found, error) {
	return via(ctx, w, &Call{Method: MethodFind}, func(ctx context.Context) (Found, error) {
		p, err := ability[Snapshotter](w, MethodFind, Locator{})
		if err != nil {
			return Found{}, err
		}
		return p.Find(ctx, name)
	})
}

func (w *wrapped) Push(ctx context.Context, opts PushOptions) (PushResult, error) {
	return via(ctx, w, &Call{Method: MethodPush}, func(ctx context.Context) (PushResult, error) {
		p, err := ability[Pusher](w, MethodPush, Locator{})
		if err != nil {
			return PushResult{}, err
		}
		return p.Push(ctx, opts)
	})
}

func (w *wrapped) Fetch(ctx context.Context) (Revision, error) {
	return via(ctx, w, &Call{Method: MethodFetch}, func(ctx context.Context) (Revision, error) {
		p, err := ability[Syncer](w, MethodFetch, Locator{})
		if err != nil {
			return "", err
		}
		return p.Fetch(ctx)
	})
}

func (w *wrapped) Adopt(ctx context.Context, from, to Revision) error {
	return w.run(ctx, &Call{Method: MethodAdopt}, func(ctx context.Context) error {
		p, err := ability[Syncer](w, MethodAdopt, Locator{})
		if err != nil {
			return err
		}
		return p.Adopt(ctx, from, to)
	})
}

func (w *wrapped) Base(ctx context.Context, a, b Revision) (Revision, error) {
	return via(ctx, w, &Call{Method: MethodBase}, func(ctx context.Context) (Revision, error) {
		p, err := ability[Syncer](w, MethodBase, Locator{})
		if err != nil {
			return "", err
		}
		return p.Base(ctx, a, b)
	})
}

func (w *wrapped) Differences(ctx context.Context, from, to Revision) ([]Difference, error) {
	return via(ctx, w, &Call{Method: MethodDiffer}, func(ctx context.Context) ([]Difference, error) {
		p, err := ability[Differ](w, MethodDiffer, Locator{})
		if err != nil {
			return nil, err
		}
		return p.Differences(ctx, from, to)
	})
}

func (w *wrapped) Rebase(ctx context.Context, base, from, onto Revision, combine Combine) (Revision, error) {
	return via(ctx, w, &Call{Method: MethodRebase}, func(ctx context.Context) (Revision, error) {
		p, err := ability[Rebaser](w, MethodRebase, Locator{})
		if err != nil {
			return "", err
		}
		return p.Rebase(ctx, base, from, onto, combine)
	})
}

func (w *wrapped) Branches(ctx context.Context) (Branches, error) {
	return via(ctx, w, &Call{Method: MethodBranches}, func(ctx context.Context) (Branches, error) {
		p, err := ability[Brancher](w, MethodBranches, Locator{})
		if err != nil {
			return Branches{}, err
		}
		return p.Branches(ctx)
	})
}

func (w *wrapped) Begin(ctx context.Context, branch string, ask bool) (Revision, error) {
	return via(ctx, w, &Call{Method: MethodBegin}, func(ctx context.Context) (Revision, error) {
		p, err := ability[Brancher](w, MethodBegin, Locator{})
		if err != nil {
			return "", err
		}
		return p.Begin(ctx, branch, ask)
	})
}

func (w *wrapped) Start(ctx context.Context, branch string, from, to Revision) error {
	return w.run(ctx, &Call{Method: MethodStart}, func(ctx context.Context) error {
		p, err := ability[Brancher](w, MethodStart, Locator{})
		if err != nil {
			return err
		}
		return p.Start(ctx, branch, from, to)
	})
}

func (w *wrapped) Propose(ctx context.Context, branch string, pr PullRequest) (string, error) {
	return via(ctx, w, &Call{Method: MethodPropose}, func(ctx context.Context) (string, error) {
		p, err := ability[Brancher](w, MethodPropose, Locator{})
		if err != nil {
			return "", err
		}
		return p.Propose(ctx, branch, pr)
	})
}

func (w *wrapped) StartParts(ctx context.Context, l Locator, opts WriteOptions) (Upload, error) {
	u, err := via(ctx, w, &Call{Method: MethodStartParts, Locator: l}, func(ctx context.Context) (Upload, error) {
		p, err := ability[Multiparter](w, MethodStartParts, l)
		if err != nil {
			return nil, err
		}
		return p.StartParts(ctx, l, opts)
	})
	if err != nil {
		return nil, err
	}
	return &wrappedUpload{w, l, u}, nil
}

func (w *wrapped) AbortParts(ctx context.Context, before time.Time) (int, error) {
	return via(ctx, w, &Call{Method: MethodAbortParts}, func(ctx context.Context) (int, error) {
		p, err := ability[Multiparter](w, MethodAbortParts, Locator{})
		if err != nil {
			return 0, err
		}
		return p.AbortParts(ctx, before)
	})
}

// wrappedUpload sends the calls of an upload through the wrapper it began in.
type wrappedUpload struct {
	w     *wrapped
	l     Locator
	inner Upload
}

func (u *wrappedUpload) Part(ctx context.Context, n int, body Body) error {
	c := &Call{Method: MethodPart, Locator: u.l}
	return u.w.run(ctx, c, func(ctx context.Context) error { return u.inner.Part(ctx, n, c.upload(body)) })
}

func (u *wrappedUpload) CopyPart(ctx context.Context, n int, from Locator, opts ReadOptions) error {
	return u.w.run(ctx, &Call{Method: MethodCopyPart, Locator: from, To: u.l}, func(ctx context.Context) error {
		return u.inner.CopyPart(ctx, n, from, opts)
	})
}

func (u *wrappedUpload) Complete(ctx context.Context) (Info, error) {
	return via(ctx, u.w, &Call{Method: MethodComplete, Locator: u.l}, u.inner.Complete)
}

func (u *wrappedUpload) Abort(ctx context.Context) error {
	return u.w.run(ctx, &Call{Method: MethodAbort, Locator: u.l}, u.inner.Abort)
}
