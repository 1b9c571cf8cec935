package content

import (
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// pread reads until p is full or the file ends, which is io.EOF.
func pread(fd int, p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Pread(fd, p[done:], off+int64(done))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return done, err
		case n == 0:
			return done, io.EOF
		default:
			done += n
		}
	}
	return done, nil
}

// pwrite writes all of p, or returns an error and how much it wrote.
func pwrite(fd int, p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Pwrite(fd, p[done:], off+int64(done))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// retry repeats a call that a signal interrupted.
func retry(do func() error) error {
	for {
		if err := do(); err != unix.EINTR {
			return err
		}
	}
}

// copyRange copies n bytes from one descriptor to another, inside the kernel
// where the file systems can. It returns how many were copied; fewer when the source
// ends.
func copyRange(from int, off int64, to int, toOff, n int64) (int64, error) {
	done := int64(0)
	for done < n {
		r, w := off+done, toOff+done
		c, err := unix.CopyFileRange(from, &r, to, &w, int(min(n-done, 1<<30)), 0)
		switch {
		case err == unix.EINTR:
		case err == unix.EXDEV || err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP:
			c, err := copyThrough(from, off+done, to, toOff+done, n-done)
			return done + c, err
		case err != nil:
			return done, err
		case c == 0:
			return done, nil
		default:
			done += int64(c)
		}
	}
	return done, nil
}

// copyThrough is copyRange through our memory.
func copyThrough(from int, off int64, to int, toOff, n int64) (int64, error) {
	buf := make([]byte, min(n, 256<<10))
	done := int64(0)
	for done < n {
		c, err := pread(from, buf[:min(int64(len(buf)), n-done)], off+done)
		if w, werr := pwrite(to, buf[:c], toOff+done); werr != nil {
			return done + int64(w), werr
		}
		done += int64(c)
		if err == io.EOF {
			return done, nil
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// bytesOf is the space that a file takes on its disk.
func bytesOf(fd int) int64 {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return 0
	}
	return st.Blocks * 512
}

// bootID names this boot, "" if the kernel does not say.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}
