package table

// Session says how the one before this ended. It stays the answer of later Opens too until
// the first Commit: all work that is due after an unclean end belongs into that Commit, and
// then is either done or done again.
type Session struct {
	First    bool // there was none
	Clean    bool // it ended with Close; true for the first
	SameBoot bool // the machine has run all the time since; true for the first
}

// Killed reports whether the last session ended without Close, and the machine
// went on.
func (s Session) Killed() bool { return !s.Clean && s.SameBoot }

const sessionVersion = 1

// session is the last session, and whether this one is recorded.
type session struct {
	last  Session
	begun bool
}

// Session says how the last session ended.
func (t *Table) Session() Session { return t.session.last }

func (t *Table) readSession() {
	record, closer := t.read(keySession)
	if closer == nil {
		t.session.last = Session{First: true, Clean: true, SameBoot: true}
		return
	}
	defer closer.Close()
	d := decode(record, sessionVersion)
	clean, boot := d.byte(), d.text()
	if err := d.end(); err != nil {
		t.damaged("session: %w", err)
		return
	}
	t.session.last = Session{
		Clean:    clean != 0,
		SameBoot: boot != "" && boot == t.options.BootID,
	}
}

// beginSession adds to the first Commit that a session is under way. It
// reports whether it did: that Commit must be on the disk, or a power cut
// would show the table as it was cleanly closed before, together with content
// that was changed since.
func (t *Table) beginSession() bool {
	if t.session.begun {
		return false
	}
	t.session.begun = true
	t.inspector.setBoot()
	t.writeSession(0)
	if t.session.last.First {
		t.write(keyListed, nil)
	}
	return true
}

func (t *Table) endSession() { t.writeSession(1) }

func (t *Table) writeSession(clean uint64) {
	e := encoder{sessionVersion}
	e.uint(clean)
	e.text(t.options.BootID)
	t.write(keySession, e)
}
