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

// dial reaches a server (package integration/memoryserver) at a Unix socket. It fails with
// ErrUnavailable when no server answers. The server's provider stays open when the client closes.
func dial(ctx context.Context, c wire.Clone, socket string) (*Client, error) {
	client := &Client{conn: wire.NewConn(c, func(ctx context.Context) (net.Conn, error) { return connectOwn(ctx, socket) })}
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
