package odb

import "fmt"

// promisedEnding is that of the file without content that marks a pack as promised.
const promisedEnding = ".promisor"

// Missing brings blobs here that are not. It is asked for one at a time by who needs
// it now; the error says why it cannot come.
type Missing func(blob ID) error

// Promise has blobs that are not here brought. It is called before the database is
// used by others; nil: what is not here is an error.
func (s *Store) Promise(m Missing) { s.missing = m }

// bring is where a blob is, once it is here.
func (s *Store) bring(id ID) (p *pack, i int, err error) { return s.locate(id, Blob) }

// locate is where an object is. Only blobs may have to come first.
func (s *Store) locate(id ID, kind Kind) (p *pack, i int, err error) {
	p, i, ok := s.find(id)
	if !ok && kind == Blob && s.missing != nil {
		if err := s.missing(id); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", id, err)
		}
		p, i, ok = s.find(id)
	}
	if !ok {
		return nil, 0, fmt.Errorf("%s: %w", id, ErrNotFound)
	}
	return p, i, nil
}
