package cache

import "github.com/wsmount/wsmount/fs"

// Fsync implements fs.File. What stays here goes to the disk, else the backend
// has it, with every change of names and attributes before.
func (f *file) Fsync(op *fs.Op, _ bool) error {
	v := f.v
	stays := f.staysHere()
	if !stays && !v.o.Policy.NoWait {
		if err := v.opener.FlushIfOpen(f.oi.Ino); err != nil {
			return err
		}
		return v.waitForContent(op, f.oi.Ino)
	}
	if err := v.opener.Flush(f.oi, true); err != nil {
		return err
	}
	if !stays {
		if err := v.waitForContent(op, f.oi.Ino); err != nil {
			return err
		}
	}
	return v.opener.Sync(f.oi)
}
