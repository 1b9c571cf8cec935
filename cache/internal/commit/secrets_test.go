package commit

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
)

const value = "0123456789"

// What is short or nothing is no secret, and content is not searched where none is known.
func TestNoSecrets(t *testing.T) {
	var none *Secrets
	none.Add("key", value)
	s := &Secrets{}
	s.Add("empty", "")
	s.Add("short", "1234567\n")
	for _, s := range []*Secrets{none, s} {
		r := strings.NewReader(value)
		assert.True(t, s.Search(r, 1, nil) == io.Reader(r), "something is looked for")
		assert.OK(t, s.Wait(t.Context()))
	}
}

// Content fails to be read where a secret ends, in whatever form and pieces it comes, and what
// is said of it has the name of the secret and not its value.
func TestSearch(t *testing.T) {
	s := &Secrets{}
	s.Add("other", "another value")
	s.Add("key", " "+value+"\n")
	s.Add("again", value)
	const odd = "s3cr3t/with+signs and\nline"
	const signs = "~~~???>>>" // in base64 there are both + and / in it, or - and _
	s.Add("key", odd+"\n")
	s.Add("key", signs)
	for text, secret := range map[string]bool{
		"": false, value[1:]: false, "012345678 9": false,
		value: true, "a=" + value + "\nb=c": true, "x" + base64.StdEncoding.EncodeToString([]byte("user:"+value)): true,
		"= " + odd + " #": true, `s3cr3t/with+signs and\nline`: true, url.QueryEscape(odd): true, url.PathEscape(odd): true, odd[:9] + "." + odd[10:]: false,
		base64.StdEncoding.EncodeToString([]byte(odd)): true, base64.StdEncoding.EncodeToString([]byte(":" + odd + "...")): true,
		base64.StdEncoding.EncodeToString([]byte("::" + odd)): true, base64.URLEncoding.EncodeToString([]byte("user: " + signs + "?")): true,
	} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			var found []Finding
			_, err := io.ReadAll(s.Search(r, 7, func(f Finding) { found = append(found, f) }))
			assert.Equal(t, err != nil, secret, text)
			if !secret {
				assert.Equal(t, len(found), 0, text)
				continue
			}
			refusal := pending.RefusalOf(fmt.Errorf("sent: %w", err))
			assert.True(t, refusal != nil && refusal.Secret && !refusal.Passes, text)
			assert.Equal(t, err.Error(), "it holds the value of the secret key: take it out, or exclude or ignore the file")
			assert.True(t, len(found) == 1 && found[0].Err == err, text)
		}
	}
}

// What was found is known without another search as long as the content and the secrets are
// the same.
func TestFindings(t *testing.T) {
	s := &Secrets{}
	s.Add("key", value)
	all := Findings{}
	for ino := range table.Ino(3) {
		_, _ = io.ReadAll(s.Search(strings.NewReader(value), 7, func(f Finding) { all[ino] = f }))
	}
	copied := all.Clone()
	assert.False(t, copied.check(0, 7, s) == nil, "the same content")
	assert.True(t, copied.check(1, 8, s) == nil, "other content")
	assert.True(t, copied.check(1, 7, s) == nil, "it was forgotten")
	assert.True(t, copied.check(9, 7, s) == nil, "content in which nothing was found")
	all.Keep(copied)
	assert.Equal(t, len(all), 2, "kept")
	s.Add("more", "another value")
	assert.True(t, copied.check(0, 7, s) == nil, "other secrets")
}

// Values that are expected are waited for, but not for ever.
func TestExpect(t *testing.T) {
	s := &Secrets{}
	first, second := s.Expect(), s.Expect()
	gone, cancel := context.WithCancelCause(t.Context())
	errLate := errors.New("late")
	cancel(errLate)
	assert.Is(t, s.Wait(gone), errLate)
	first()
	assert.Is(t, s.Wait(gone), errLate)
	second()
	assert.OK(t, s.Wait(gone))
}
