package needle

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

func find(s *Set, text string, pieces int) (string, bool) {
	search := s.Search()
	for len(text) > 0 {
		n := min(len(text), max(pieces, 1))
		if name, found := search.Next([]byte(text[:n])); found {
			return name, true
		}
		text = text[n:]
	}
	return "", false
}

func TestFind(t *testing.T) {
	long := strings.Repeat("-", 40) + "key" + strings.Repeat("=", 40)
	set := New(Needle{"a", []byte("abcdabce")}, Needle{"b", []byte("bcdabcx")}, Needle{"long", []byte(long)}, Needle{"none", nil})
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"abcdabc", ""}, {"abcdabce", "a"}, {"abcdabcdabce", "a"}, {"xabcdabcx", "b"}, {"abcabcdabcdabcx", "b"},
		{long, "long"}, {"-" + long, "long"}, {strings.Repeat("-", 60) + "key" + strings.Repeat("=", 39), ""}, {strings.Repeat("-", 60) + "key" + strings.Repeat("=", 40), "long"},
		{strings.Repeat("-", 60) + long[:50] + "x" + long[50:], ""},
	} {
		for _, pieces := range []int{1, 2, 3, 7, 1000} {
			got, found := find(set, c.text, pieces)
			assert.True(t, got == c.want && found == (c.want != ""), "in", c.text, pieces, "bytes at once: got", got, "want", c.want)
		}
	}
	_, found := find(New(), "anything", 3)
	assert.False(t, found, "nothing was looked for, and found")
}

// What is found is what a plain search finds, however the stream is cut.
func TestFindLikeContains(t *testing.T) {
	r := rand.New(rand.NewPCG(tier.Seed(t), 0))
	text := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab"[r.IntN(2)]
		}
		return b
	}
	both, cases := 0, tier.Pick(500, 20_000)
	for range cases {
		needles := []Needle{{"x", text(1 + r.IntN(12))}, {"y", text(30 + r.IntN(12))}}
		hay := text(200)
		if r.IntN(2) == 0 {
			hay = append(append(text(50), needles[1].Text...), text(10)...)
		}
		want := bytes.Contains(hay, needles[0].Text) || bytes.Contains(hay, needles[1].Text)
		if _, got := find(New(needles...), string(hay), 1+r.IntN(80)); got != want {
			t.Fatalf("%q in %q: got %v, want %v", needles, hay, got, want)
		}
		_, got := find(New(needles[1]), string(hay), 1+r.IntN(80))
		if want = bytes.Contains(hay, needles[1].Text); got != want {
			t.Fatalf("%q in %q: got %v, want %v", needles[1], hay, got, want)
		}
		if want {
			both++
		}
	}
	assert.True(t, both >= cases/20, "only", both, "of the long texts were there")
}

func BenchmarkNext(b *testing.B) {
	var needles []Needle
	for range 24 {
		text := make([]byte, 40)
		for i := range text {
			text[i] = byte('!' + rand.IntN(90))
		}
		needles = append(needles, Needle{"x", text})
	}
	set, hay := New(needles...), make([]byte, 1<<20)
	for i := range hay {
		hay[i] = byte(' ' + rand.IntN(95))
	}
	b.SetBytes(int64(len(hay)))
	for b.Loop() {
		_, found := set.Search().Next(hay)
		assert.Must(b, !found, "found by chance")
	}
}
