package odb

import "fmt"

// promisedEnding is the ending of the empty file that marks a pack as promised.
const promisedEnding = ".promisor"

// Missing brings a blob that is not local. It is called for one at a time by a caller that needs
// it now; the error is the reason why it cannot come.
type Missing func(blob ID) error

// Promise sets the function that brings missing blobs. It is called before the database is
// shared; nil: a missing blob is an error.
func (s *Store) Promise(m Missing) { s.missing = m }

// bring is the place of a blob, once it is local.
func (s *Store) bring(id ID) (p *pack, i int, err error) { return s.locate(id, Blob) }

// locate is the place of an object. Only blobs may have to be fetched first.
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
