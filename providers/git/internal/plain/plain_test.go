package plain

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// What a URL may be, and what of it a daemon is told.
func TestPlaces(t *testing.T) {
	for text, want := range map[string]place{
		"git://git.acme.test/acme/r.git":                       {"git.acme.test", "git.acme.test:9418", "/acme/r.git"},
		"GIT://git.acme.test/r":                                {"git.acme.test", "git.acme.test:9418", "/r"},
		"git://git.acme.test:4000/r":                           {"git.acme.test:4000", "git.acme.test:4000", "/r"},
		"git://[::1]/r":                                        {"[::1]", "[::1]:9418", "/r"},
		"git://[::1]:4000/~ann/a%20b":                          {"[::1]:4000", "[::1]:4000", "/~ann/a b"},
		"git://git.acme.test":                                  {},
		"git://git.acme.test/":                                 {},
		"git:///r":                                             {},
		"git:git.acme.test/r":                                  {},
		"git://ann@git.acme.test/r":                            {},
		"git://ann:s3cret@git.acme.test/r":                     {},
		"git://git.acme.test/r?s3cret":                         {},
		"git://git.acme.test/r#s3cret":                         {},
		"git://git.acme.test/r%00host=other":                   {},
		"git://git.acme.test/r%0a":                             {},
		"git://git.acme.test:port/r":                           {},
		"ssh://git.acme.test/r":                                {},
		"https://git.acme.test/r":                              {},
		"/srv/r":                                               {},
		"git://git.acme.test/" + strings.Repeat("a", mostPath): {},
	} {
		got, err := parse(text)
		assert.True(t, got == want && (err == nil) == (want != place{}), text, got, want, err)
		if err != nil && (!errors.Is(err, providers.ErrInvalid) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%.80s: %v", text, err)
		}
	}
}

// The first line is that of git, and nothing follows it until the daemon speaks.
func TestFirstLine(t *testing.T) {
	for service, begin := range map[string]func(*Server, context.Context) (io.Closer, error){
		"git-upload-pack":  func(s *Server, ctx context.Context) (io.Closer, error) { return s.Upload(ctx) },
		"git-receive-pack": func(s *Server, ctx context.Context) (io.Closer, error) { return s.Receive(ctx) },
	} {
		ours, theirs := net.Pipe()
		heard := make(chan string)
		go func() {
			b, _ := io.ReadAll(theirs)
			heard <- string(b)
		}()
		s := New("git://git.acme.test:4000/acme/r.git", Options{Dial: func(context.Context, string) (net.Conn, error) { return ours, nil }})
		one := assert.Of(begin(s, t.Context())).OK(t)
		one.Close()
		want := service + " /acme/r.git\x00host=git.acme.test:4000\x00"
		got := <-heard
		assert.True(t, len(got) >= 4 && got[4:] == want, "heard", got, want)
	}
}

// A daemon that has enough connections says so and reads nothing: what it said counts,
// and not that the question could not be sent.
func TestRefusedUnread(t *testing.T) {
	for said, want := range map[string]string{
		"0014ERR down for now": "the server says: down for now",
		"0014ERR down":         "the connection broke off: broken pipe",
		"":                     "the connection broke off: broken pipe",
	} {
		s := New("git://git.acme.test/acme/r.git", Options{Dial: func(context.Context, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				_, _ = io.WriteString(theirs, said)
			}()
			return unread{ours}, nil
		}})
		_, err := s.Upload(t.Context())
		assert.True(t, err != nil && err.Error() == want && errors.Is(err, providers.ErrUnavailable), "said", said, err, "want", want)
	}
}

// unread is a connection of which the other end reads nothing.
type unread struct{ net.Conn }

func (unread) Write([]byte) (int, error) { return 0, syscall.EPIPE }
