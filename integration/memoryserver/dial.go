package memoryserver

import (
	"context"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// Dial reaches a server at a Unix socket as a mount does: through memory.Driver, with its errors.
func Dial(ctx context.Context, socket string) (*memory.Client, error) {
	return DialClone(ctx, socket, "", "")
}

// DialClone is Dial for a clone of a served remote: all callers that give one name use one clone.
// branch is the branch it tracks; "": main. ErrInvalid when the clone tracks another.
func DialClone(ctx context.Context, socket, clone, branch string) (*memory.Client, error) {
	config := map[string]string{"socket": socket, "clone": clone, "branch": branch}
	p, err := memory.Driver().Open(ctx, providers.Settings{Config: config})
	if err != nil {
		return nil, err
	}
	return p.(*memory.Client), nil
}
