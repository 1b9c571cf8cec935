package memory

import (
	"context"
	"net"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory/wire"
)

// served are the abilities that a request can carry.
const served = providers.AbilityCopy | providers.AbilityMove | providers.AbilityAttr | providers.AbilityCommit |
	providers.AbilitySnapshot | providers.AbilityPush | providers.AbilitySync | providers.AbilityDiffer

// Client is a provider in another process. It connects anew when the server was away.
type Client struct {
	conn         *wire.Conn
	capabilities providers.Capabilities
}

var _ interface {
	providers.Provider
	providers.Copier
	providers.Mover
	providers.AttrSetter
	providers.Committer
	providers.Snapshotter
	providers.Pusher
	providers.Syncer
	providers.Differ
} = (*Client)(nil)

// Dial reaches a server (package integration/memoryserver) at a network ("unix", "tcp") and
// address as net.Dial takes them. It fails with ErrUnavailable when no server answers. The
// server's provider stays open when the client closes.
func Dial(ctx context.Context, network, address string) (*Client, error) {
	return DialClone(ctx, network, address, "", "")
}

// DialClone is Dial for a clone of a served remote: all callers that give one name use one
// clone. branch is the branch it tracks; "": main. ErrInvalid when the clone tracks another.
func DialClone(ctx context.Context, network, address, name, branch string) (*Client, error) {
	return dial(ctx, wire.Clone{Name: name, Branch: branch}, func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	})
}

func dial(ctx context.Context, c wire.Clone, connect func(context.Context) (net.Conn, error)) (*Client, error) {
	client := &Client{conn: wire.NewConn(c, connect)}
	caps, err := wire.Ask[providers.Capabilities](ctx, client.conn, wire.Request{Method: wire.MethodHello}, wire.Nothing{}, providers.Body{})
	if err != nil {
		client.conn.Close()
		return nil, err
	}
	caps.ConcurrentWriters = true // all clients use the one server
	client.capabilities = caps
	client.capabilities.Abilities &= served
	return client, nil
}
