package vault

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

func TestTranslate(t *testing.T) {
	kinds := map[unix.Errno]error{
		unix.ENOENT: providers.ErrNotExist, unix.EEXIST: providers.ErrExist, unix.ENOTDIR: providers.ErrNotDir,
		unix.ELOOP: providers.ErrNotDir, unix.EISDIR: providers.ErrIsDir, unix.ENOTEMPTY: providers.ErrNotEmpty,
		unix.EACCES: providers.ErrPermission, unix.EPERM: providers.ErrPermission, unix.EXDEV: providers.ErrPermission,
		unix.EROFS: providers.ErrReadOnly, unix.ENOSPC: providers.ErrQuota, unix.EDQUOT: providers.ErrQuota,
		unix.EFBIG: providers.ErrTooLarge, unix.ENAMETOOLONG: providers.ErrNameTooLong, unix.EINVAL: providers.ErrInvalid,
		unix.ENOSYS: providers.ErrUnsupported, unix.EOPNOTSUPP: providers.ErrUnsupported, unix.EIO: providers.ErrUnavailable,
		unix.ESTALE: providers.ErrUnavailable,
	}
	for errno, want := range kinds {
		err := translate(providers.MethodStat, providers.MustLocator("a"), errno)
		kind := providers.KindOf(err)
		assert.True(t, kind.Err == want, errno, "kind", kind.Name, want)
		var e *providers.Error
		assert.True(t, errors.As(err, &e) && e.Code == unix.ErrnoName(errno), errno, "code of", err)
		for _, other := range kinds {
			assert.False(t, other != want && errors.Is(err, other), errno, "is also", other)
		}
	}
	assert.Is(t, translate(providers.MethodStat, providers.Locator{}, nil), nil, "no error became one")
}

// Never too long, never twice, never half a character.
func TestTempName(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"a", "a\nb", string(make([]byte, 255)), strings.Repeat("\u00fc", 127)} {
		for range 100 {
			temp := tempName(name)
			if len(temp) > providers.MaxName || seen[temp] || !utf8.ValidString(temp) {
				t.Fatalf("temporary name %q of %d bytes, again: %v", temp, len(temp), seen[temp])
			}
			seen[temp] = true
		}
	}
}
