// Package needle searches a stream of bytes for any of a few texts, in one pass and without
// buffering.
//
// It does not know the meaning of the texts, and returns only the name that each was given.
//
//	set := needle.New(needle.Needle{Name: "token", Text: []byte("ghp_…")})
//	s := set.Search()
//	for piece := range pieces {
//		if name, found := s.Next(piece); found { … }
//	}
package needle

import "bytes"

// A Needle is a text to look for, and its name.
type Needle struct {
	Name string
	Text []byte
}

// begin bounds the bytes of each text that are in the automaton: the rest is compared once
// these were seen, so that a key of some thousand bytes costs no megabytes.
const begin = 32

// Set is an automaton that finds the beginnings of all texts at once (Aho and Corasick). It
// does not change, and may be used concurrently.
type Set struct {
	next    [][256]int32
	ends    [][]int // of each state the needles whose beginning ends there
	needles []Needle
}

// New makes a Set. Empty texts are never found.
func New(needles ...Needle) *Set {
	s := &Set{next: make([][256]int32, 1), ends: make([][]int, 1)}
	for _, n := range needles {
		if len(n.Text) > 0 {
			s.add(n)
		}
	}
	s.link()
	return s
}

// add adds a text's beginning as a path to the tree of all.
func (s *Set) add(n Needle) {
	state := int32(0)
	for _, b := range n.Text[:min(len(n.Text), begin)] {
		if s.next[state][b] == 0 {
			s.next[state][b] = int32(len(s.next)) // a state for each byte of some keys
			s.next, s.ends = append(s.next, [256]int32{}), append(s.ends, nil)
		}
		state = s.next[state][b]
	}
	s.ends[state] = append(s.ends[state], len(s.needles))
	s.needles = append(s.needles, n)
}

// link completes the automaton: where the tree has no edge for a byte, the search continues
// from the longest suffix of the bytes read that is in the tree too.
func (s *Set) link() {
	fail := make([]int32, len(s.next))
	var queue []int32
	for _, to := range s.next[0] {
		if to != 0 {
			queue = append(queue, to)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		s.ends[state] = append(s.ends[state], s.ends[fail[state]]...)
		for b, to := range s.next[state] {
			if to == 0 {
				s.next[state][b] = s.next[fail[state]][b]
				continue
			}
			fail[to] = s.next[fail[state]][b]
			queue = append(queue, to)
		}
	}
}

// Search begins to read a stream.
func (s *Set) Search() *Search { return &Search{set: s} }

// Search is one stream.
type Search struct {
	set   *Set
	state int32
	open  []rest // beginnings that were seen, and the rests to match
}

type rest struct {
	needle int
	text   []byte
}

// Next reads the next piece of the stream, and returns the first text that ends in it.
func (s *Search) Next(p []byte) (name string, found bool) {
	if n, ok := s.follow(p); ok {
		return s.set.needles[n].Name, true
	}
	next, ends, state := s.set.next, s.set.ends, s.state
	for i, b := range p {
		if state = next[state][b]; len(ends[state]) == 0 {
			continue
		}
		for _, n := range ends[state] {
			if s.begun(n, p[i+1:]) {
				return s.set.needles[n].Name, true
			}
		}
	}
	s.state = state
	return "", false
}

// follow continues texts whose beginning was in an earlier piece.
func (s *Search) follow(p []byte) (needle int, found bool) {
	open := s.open
	s.open = s.open[:0]
	for _, r := range open {
		if s.goesOn(r, p) {
			return r.needle, true
		}
	}
	return 0, false
}

// begun reports whether a text whose beginning was seen ends in p.
func (s *Search) begun(n int, p []byte) bool {
	text := s.set.needles[n].Text
	return s.goesOn(rest{n, text[min(len(text), begin):]}, p)
}

// goesOn reports whether all of the rest is in p, and keeps it if it may continue in the next
// piece.
func (s *Search) goesOn(r rest, p []byte) bool {
	n := min(len(r.text), len(p))
	if !bytes.Equal(r.text[:n], p[:n]) {
		return false
	}
	if n == len(r.text) {
		return true
	}
	s.open = append(s.open, rest{r.needle, r.text[n:]})
	return false
}
