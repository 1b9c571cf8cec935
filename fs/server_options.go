package fs

import (
	"log"
	"log/slog"
	"strings"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Options configure a mount; the zero value works.
type Options struct {
	Log         *slog.Logger // nil is silent
	FsName      string       // the source in /proc/mounts; "wsmount" when empty
	ControlName string       // ".wsmount" when empty
	AllowOther  bool         // users other than the mounting one may access it
	ReadOnly    bool         // mount flag ro, for a tree whose parts all are

	// MountOptions are further options of the mount, as mount(8) spells them.
	MountOptions []string

	NoPassthrough bool // the kernel reads and writes through the daemon only
	Debug         bool // log every request and reply

	// OnFailure is called for requests that failed for a reason that a person should see. It
	// must not block.
	OnFailure func(Failure)

	// OnEvent is called for changes of content. It must not block.
	OnEvent func(Event)

	Now func() time.Time // time.Now when nil
}

func (o *Options) setDefaults() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.FsName == "" {
		o.FsName = "wsmount"
	}
	if o.ControlName == "" {
		o.ControlName = ".wsmount"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// mountOptions chooses the features that we ask of the kernel. The kernel checks permissions
// (default_permissions), from modes, owners and ACLs. We invalidate data
// (ExplicitDataCacheControl): the kernel's guess by mtime would drop pages after every write of
// our own. Umask comes with the request, since a default ACL replaces it. The volume clears
// set-user-id bits when the kernel says so; otherwise every first write would ask for
// security.capability. Symlinks never change their target.
//
// Directories are always read with attributes (READDIRPLUS, not its automatic
// mode): a program that lists and then stats would otherwise get them for the
// first page only, and a lookup for every name after it, 17 times the requests
// in a tree of 40 000 names.
func (s *Server) mountOptions(o *Options) *fuse.MountOptions {
	m := &fuse.MountOptions{
		FsName: o.FsName, Name: "wsmount",
		Options:                  append([]string{"default_permissions"}, o.MountOptions...),
		AllowOther:               o.AllowOther,
		MaxWrite:                 maxWrite,
		MaxBackground:            maxBackground,
		EnableSymlinkCaching:     true,
		EnableAcl:                true,
		ExplicitDataCacheControl: true,
		DisableSplice:            true,
		Debug:                    o.Debug,
		Logger:                   log.New(&slogWriter{o.Log}, "", 0),
		PanicHandler:             s.front.panicked,
		ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC | fuse.CAP_DONT_MASK |
			fuse.CAP_HANDLE_KILLPRIV_V2 | fuse.CAP_SETXATTR_EXT | fuse.CAP_ASYNC_DIO |
			fuse.CAP_DIRECT_IO_ALLOW_MMAP,
	}
	if o.ReadOnly {
		m.Options = append(m.Options, "ro")
	}
	if s.privileged {
		m.DirectMountStrict = true
		m.Options, m.DirectMountFlags = mountFlags(m.Options)
	}
	return m
}

// mountFlags separates the options that mount(2) takes as flags from those that it takes as
// text.
func mountFlags(options []string) (text []string, flags uintptr) {
	flags = unix.MS_NOSUID | unix.MS_NODEV
	for _, o := range options {
		switch o {
		case "ro":
			flags |= unix.MS_RDONLY
		case "noatime":
			flags |= unix.MS_NOATIME
		case "rw":
		default:
			text = append(text, o) // the library knows suid, dev, exec and their opposites
		}
	}
	return text, flags
}

// slogWriter takes the FUSE library's log lines.
type slogWriter struct{ log *slog.Logger }

func (w *slogWriter) Write(p []byte) (int, error) {
	w.log.Info("fuse: " + strings.TrimSpace(string(p)))
	return len(p), nil
}
