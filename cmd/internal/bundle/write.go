package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
)

// Write writes the bundle, and returns its SHA-256. It fails if a file has changed since
// Collect.
func (c *Content) Write(ctx context.Context, w io.Writer) (sum string, err error) {
	all := sha256.New()
	t := tar.NewWriter(io.MultiWriter(w, all))
	text, err := c.encode()
	if err != nil {
		return "", err
	}
	if len(text) > maxList {
		return "", fmt.Errorf("the list of the files is longer than %d bytes", maxList)
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: listName, Size: int64(len(text)), Mode: 0o644, ModTime: noTime}); err != nil {
		return "", err
	}
	if _, err := t.Write(text); err != nil {
		return "", err
	}
	for _, e := range c.Entries {
		if err := c.member(ctx, t, e); err != nil {
			return "", fmt.Errorf("%q: %w", e.Path, err)
		}
	}
	if err := t.Close(); err != nil {
		return "", err
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// noTime is when everything in a bundle was changed last.
var noTime = time.Unix(0, 0)

// header is the member of an entry.
func (e Entry) header() *tar.Header {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: filesBelow + e.Path, Size: e.Size, Mode: 0o644, ModTime: noTime}
	switch {
	case e.Type == Dir:
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, h.Name+"/", 0o755
	case e.Type == Link:
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.Target, 0o777
	case e.Executable:
		h.Mode = 0o755
	}
	return h
}

func (c *Content) member(ctx context.Context, t *tar.Writer, e Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := t.WriteHeader(e.header()); err != nil || e.Type != File {
		return err
	}
	if e.Path == Manifest && c.manifest != nil {
		return copySum(ctx, t, bytes.NewReader(c.manifest), e)
	}
	f, err := openFile(c.root, e.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	return copySum(ctx, t, f, e)
}

// copySum copies the content of a file, which has to match its entry.
func copySum(ctx context.Context, w io.Writer, r io.Reader, e Entry) error {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(&patient{ctx, r}, e.Size+1))
	if err != nil {
		return err
	}
	if n != e.Size || hex.EncodeToString(sum.Sum(nil)) != e.SHA256 {
		return errors.New("its content is not what the list of the bundle says")
	}
	return nil
}
