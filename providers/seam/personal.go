package seam

import (
	"context"
	"fmt"

	"github.com/wsmount/wsmount/providers"
)

// Authorization names the person who asked for a change in the operator's own space.
type Authorization struct{ By string }

// Personal is the operator's own space, in which memory is one directory. Agents change the rest
// only when the operator has asked for that change. It is no Backend, and its verb has a name of
// its own: a wrong argument of Write cannot reach the space, and no Locator of a Backend leads to
// it, since none leads upwards.
type Personal struct {
	space  Conditional
	memory Locator
	permit func(context.Context, Authorization, Locator) error
}

// NewPersonal is the space that has memory at a place below its root, which is
// providers.ErrInvalid if it is the root itself. permit is asked before each change, and records
// it; a change that it refuses does not happen. The space is the Personal's to close.
func NewPersonal(space Conditional, memory Locator, permit func(context.Context, Authorization, Locator) error) (*Personal, error) {
	if memory == (Locator{}) {
		return nil, fmt.Errorf("memory is the whole of it, and there is no space above: %w", providers.ErrInvalid)
	}
	return &Personal{space, memory, permit}, nil
}

// PersonalWrite is Write in the space. Without an Authorization it is
// providers.ErrPermission, and in memory providers.ErrInvalid.
func (p *Personal) PersonalWrite(ctx context.Context, a Authorization, l Locator, content string) (Locator, error) {
	return p.change(ctx, a, l, content, func() (Locator, error) { return p.space.Write(ctx, l, content) })
}

// PersonalWriteIf is PersonalWrite with the condition of WriteIf.
func (p *Personal) PersonalWriteIf(ctx context.Context, a Authorization, l Locator, old ETag, content string) (Locator, error) {
	return p.change(ctx, a, l, content, func() (Locator, error) { return p.space.WriteIf(ctx, l, old, content) })
}

func (p *Personal) change(ctx context.Context, a Authorization, l Locator, content string, write func() (Locator, error)) (Locator, error) {
	err := CheckText(l, content)
	switch {
	case err != nil:
		return Locator{}, err // before permit is asked about an impossible change
	case a.By == "":
		return Locator{}, fail(providers.MethodWrite, l, fmt.Errorf("it is not said who asked for it: %w", providers.ErrPermission))
	case l.Within(p.memory):
		return Locator{}, fail(providers.MethodWrite, l, fmt.Errorf("it lies in memory, which has verbs of its own: %w", providers.ErrInvalid))
	}
	if err := p.permit(ctx, a, l); err != nil {
		return Locator{}, err
	}
	return write()
}

// Close closes the space.
func (p *Personal) Close() error { return p.space.Close() }
