package table

// Commit makes all changes since the last Commit or Abort in one step. When it returns,
// they survive the end of this process by any means; a power cut they survive after Sync,
// or when a later Commit does. After an error it is not known whether they were made, and
// the table is of no more use, but for two errors: ErrMisuse (Abort, and go on), and
// ErrFull, with which nothing has happened (try again when there is room, or Abort).
func (t *Table) Commit() error {
	if t.misused != nil {
		return t.misused
	}
	if err := t.Err(); err != nil {
		return err
	}
	t.stage()
	if t.batch == nil {
		return nil
	}
	if err := t.full(); err != nil {
		return err
	}
	first := t.beginSession()
	b := t.batch
	t.batch = nil
	if err := t.apply(b); err != nil {
		return err
	}
	for ino, n := range t.edits {
		if n == nil {
			t.inodes.drop(ino)
		} else {
			t.inodes.put(ino, n)
		}
	}
	clear(t.edits)
	t.named = t.named[:0]
	t.dirty.commit()
	if first {
		return t.Sync()
	}
	return nil
}

// Changed reports whether there is anything to commit.
func (t *Table) Changed() bool { return t.batch != nil || len(t.edits) > 0 }

// stage encodes the edited inodes.
func (t *Table) stage() {
	var record []byte
	for ino, n := range t.edits {
		if n == nil {
			t.delete(inodeKey(ino))
			continue
		}
		record = n.encode(record[:0])
		t.write(inodeKey(ino), record)
	}
}

// Abort forgets all changes since the last Commit. Numbers that were given
// stay given.
func (t *Table) Abort() {
	if t.batch != nil {
		if err := t.batch.Close(); err != nil {
			t.fail(err)
		}
		t.batch = nil
	}
	clear(t.edits)
	t.dirty.abort()
	t.cursors.clear()
	for _, l := range t.named {
		t.names.drop(l)
	}
	t.named = t.named[:0]
	t.changes++
	t.misused = nil
}

// Sync makes everything that was committed before the call survive a power cut. It needs no
// lock; callers that come at the same time share one fsync.
func (t *Table) Sync() error {
	if err := t.Err(); err != nil {
		return err
	}
	t.disk.sync()
	return t.Err()
}
