package cache

import (
	"bytes"
	"errors"
	"io"
)

// sameBytes reads two streams to their ends, or to the first difference.
func sameBytes(a, b io.Reader) (bool, error) {
	var x, y [64 << 10]byte
	for {
		n, aerr := io.ReadFull(a, x[:])
		m, berr := io.ReadFull(b, y[:])
		if err := errors.Join(real(aerr), real(berr)); err != nil {
			return false, err
		}
		if n != m || !bytes.Equal(x[:n], y[:m]) {
			return false, nil
		}
		if aerr != nil {
			return true, nil //nolint:nilerr // both streams have ended, and real has looked at the errors
		}
	}
}

// real is err unless it only says that a stream ended.
func real(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return err
}
