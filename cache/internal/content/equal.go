package content

import "io"

// Equal compares two contents to their ends; an error is one of reading.
func Equal(a, b io.Reader) (bool, error) {
	var x, y [32 << 10]byte
	for {
		n, err := io.ReadFull(a, x[:])
		m, err2 := io.ReadFull(b, y[:])
		if string(x[:n]) != string(y[:m]) {
			return false, nil
		}
		if err != nil || err2 != nil {
			return true, endOf(err, err2)
		}
	}
}

// endOf is the first error other than an end of content.
func endOf(errs ...error) error {
	for _, err := range errs {
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
	}
	return nil
}
