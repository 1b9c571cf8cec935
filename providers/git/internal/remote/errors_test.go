package remote

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/wsmount/wsmount/integration/assert"
)

// Of what a server sent a line is shown, and nothing of a page for browsers.
func TestErrorText(t *testing.T) {
	for sent, want := range map[string]string{
		"<html><body><h1>Log in</h1>":        "authorization failed",
		"\n<!DOCTYPE html>\n<html>":          "authorization failed",
		"blocked by rule <x>\nask the owner": "authorization failed: blocked by rule <x>",
	} {
		assert.Equal(t, (&Error{Err: fmt.Errorf("%w: %s", transport.ErrAuthorizationFailed, sent)}).Error(), want)
	}
	assert.Equal(t, (&Error{Err: errors.New("one: ")}).Error(), "one")
}
