package cache

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Options are what a working copy can be told. StateDir is required.
type Options struct {
	// StateDir holds content. It is made, 0700, if it is missing, and belongs
	// to one Volume at a time.
	StateDir string

	// Provider is the backend's name for status and user.wsmount.provider.
	Provider string

	Owner  *Owner // who has entries of unknown owner; nil: this process
	MapIDs bool   // owners come from the backend and go there
	Umask  uint32 // for entries without mode: of 0666 and 0777

	// Patience is how long a close or fsync goes on trying, and how long a
	// listing or fetch may stand still; 0: 60 s and half of that.
	Patience time.Duration

	Log *slog.Logger     // nil is silent
	Now func() time.Time // nil: time.Now
}

// Owner is a user and a group.
type Owner struct{ UID, GID uint32 }

// ErrLeftovers says that a state directory holds content of a working copy
// that did not end cleanly. Its files may be the only copy.
var ErrLeftovers = errors.New("the state directory holds unsaved content")

// needs is what a working copy cannot do without.
var needs = providers.Capabilities{
	Writable: true, ListComplete: true,
	Conditions: providers.Conditions{
		Create: providers.GuardChecked, Replace: providers.GuardChecked, Delete: providers.GuardChecked,
	},
}

const (
	defaultPatience = 60 * time.Second
	providerNameMax = providers.MaxName

	// ttl is how long the kernel may believe names and attributes: as long as
	// it likes, since every change comes through here.
	ttl = time.Hour
)

// Volume is a working copy. Make it with Open.
type Volume struct {
	p     providers.Provider
	caps  providers.Capabilities
	o     Options
	store *store
	queue *queue
	id    string // of this run, for operation ids

	ctx   context.Context // ends with the volume
	stop  context.CancelFunc
	work  sync.WaitGroup                                   // the worker, and content files being removed
	pause func(ctx context.Context, d time.Duration) error // time.Sleep that can be ended

	mu       sync.Mutex // guards all below; never held over a call of the provider
	table    table
	base     *base
	files    map[fs.Ino]*content // that are open
	flights  map[fs.Ino]*flight
	attempts map[providers.Locator]attempt
	writes   uint64              // how many there were, for operation ids
	unsaved  map[fs.Ino]struct{} // dirty
	problems []Problem
	notify   fs.Notifier // nil: nobody listens
	closed   bool
}

var _ interface {
	fs.Volume
	fs.Binder
	fs.Describer
	fs.Pather
	fs.Closer
} = (*Volume)(nil)

// Open makes a working copy of what p holds. It asks for the root, so that a
// backend that cannot be reached fails here. It fails with a
// *providers.CapabilityError when p promises too little, and with ErrLeftovers.
// The provider stays the caller's, who closes it after the volume.
func Open(ctx context.Context, p providers.Provider, o Options) (*Volume, error) {
	o.setDefaults()
	if missing := p.Capabilities().Missing(needs); len(missing) > 0 {
		return nil, fmt.Errorf("cache: %w", &providers.CapabilityError{Provider: o.Provider, Missing: missing})
	}
	info, err := p.Stat(ctx, providers.Locator{})
	if err != nil {
		return nil, fmt.Errorf("cache: the root: %w", err)
	}
	s, err := openStore(o.StateDir)
	if err != nil {
		return nil, err
	}
	v := newVolume(p, o, s)
	v.table.save(fs.RootIno, v.nodeOf(info))
	v.work.Add(1)
	go v.run()
	return v, nil
}

func (o *Options) setDefaults() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.Owner == nil {
		o.Owner = &Owner{uint32(os.Geteuid()), uint32(os.Getegid())}
	}
	if o.Provider == "" {
		o.Provider = "unknown"
	}
}

func newVolume(p providers.Provider, o Options, s *store) *Volume {
	id := make([]byte, 8)
	rand.Read(id) // never fails
	v := &Volume{p: p, caps: p.Capabilities(), o: o, store: s, queue: newQueue(),
		id: hex.EncodeToString(id), pause: sleep,
		table: newMemTable(), base: newBase(), files: map[fs.Ino]*content{},
		flights: map[fs.Ino]*flight{}, attempts: map[providers.Locator]attempt{},
		unsaved: map[fs.Ino]struct{}{}}
	v.ctx, v.stop = context.WithCancel(context.Background())
	return v
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Bind implements fs.Binder.
func (v *Volume) Bind(n fs.Notifier) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.notify = n
}

// now is the time for an inode's stamps.
func (v *Volume) now() stamp { return stampOf(v.o.Now()) }

// nodeOf is a new inode for what the backend has. Bits that would give rights
// on this machine are not taken from there.
func (v *Volume) nodeOf(info providers.Info) *node {
	n := &node{uid: v.o.Owner.UID, gid: v.o.Owner.GID, size: info.Size, gen: 1, sent: 1}
	switch info.Kind {
	case providers.KindDir:
		n.mode, n.size = syscall.S_IFDIR|0o777&^v.o.Umask, 0
	case providers.KindSymlink:
		n.mode = syscall.S_IFLNK | 0o777
	default:
		n.mode = syscall.S_IFREG | 0o666&^v.o.Umask
	}
	if info.Attr.Valid.Has(providers.AttrMode) && info.Kind != providers.KindSymlink {
		n.mode = n.kind() | info.Attr.Mode&sentMode
	}
	if info.Attr.Valid.Has(providers.AttrOwner) && v.o.MapIDs {
		n.uid, n.gid = info.Attr.UID, info.Attr.GID
	}
	n.blocks = (n.size + 511) / 512
	n.mtime = v.now()
	if t := info.ModTime(); !t.IsZero() {
		n.mtime = stampOf(t)
	}
	n.atime, n.ctime = n.mtime, n.mtime
	if len(info.Metadata) > 0 {
		n.extra().metadata = info.Metadata
	}
	return n
}

// sentMode are the permission bits that come from the backend and go there.
const sentMode = 0o1777

// attrOf is what the backend keeps of an inode's attributes.
func (v *Volume) attrOf(n *node) providers.Attr {
	a := providers.Attr{Valid: v.caps.Attributes, Mode: n.mode & sentMode,
		UID: n.uid, GID: n.gid, ModTime: n.mtime.time()}
	if !v.o.MapIDs {
		a.Valid &^= providers.AttrOwner
	}
	if n.isSymlink() {
		a.Valid &^= providers.AttrMode
	}
	return a
}

// sendable reports whether the backend can have an inode of this kind.
func (v *Volume) sendable(n *node) bool {
	return n.isRegular() || n.isDir() || n.isSymlink() && v.caps.Symlinks
}
