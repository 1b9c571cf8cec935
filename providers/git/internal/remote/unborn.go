package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/dialogue"
)

// A version2 is a connection that was asked to speak version 2 of git's protocol
// (gitprotocol-v2). It is read for the server's capabilities, and after each question for the
// answer. A server that knows the version 0 alone speaks that.
type version2 interface {
	io.ReadCloser
	ask(ctx context.Context, question []byte) error
}

// askHead asks which branch HEAD names, also one without commits: 0001 ends the command's own
// part, and 0000 all of it.
func askHead() []byte {
	var b bytes.Buffer
	e := pktline.NewEncoder(&b)
	_ = e.EncodeString("command=ls-refs\n") // a buffer takes all
	b.WriteString("0001")
	_ = e.EncodeString("unborn\n", "symrefs\n", "ref-prefix HEAD\n")
	_ = e.Flush()
	return b.Bytes()
}

// Unborn is the branch that the server's HEAD names although there is no such branch
// yet: Default does not know it, because version 0 of the protocol does not say it. It
// is "" where HEAD names none, and where the server does not know the question.
func (r *Remote) Unborn(ctx context.Context) (branch string, err error) {
	c, err := r.over.second(ctx)
	if err != nil || c == nil {
		return "", err
	}
	defer c.Close()
	fail := func(err error) error {
		if s, ok := c.(*dialogueV2); ok {
			err = s.Ended(err)
		}
		return translate(ctx, err)
	}
	knows, err := knowsUnborn(c)
	switch {
	case err != nil:
		return "", fail(err)
	case !knows:
		return "", nil
	}
	if err := c.ask(ctx, askHead()); err != nil {
		return "", fail(err)
	}
	if branch, err = headOf(c); err != nil {
		return "", fail(err)
	}
	return branch, nil
}

// knowsUnborn reads a server's capabilities. Over HTTP the name of the service may come first.
func knowsUnborn(r io.Reader) (knows bool, err error) {
	lines := pktline.NewScanner(r)
	named, second := false, false
	for lines.Scan() {
		line := strings.TrimSuffix(string(lines.Bytes()), "\n")
		values, isRefs := strings.CutPrefix(line, "ls-refs=")
		switch {
		case line == "version 2":
			second = true
		case !second && strings.HasPrefix(line, "# service="):
			named = true
		case !second && line == "" && named:
			named = false // it is over
		case !second: // branches or none, which version 0 begins with
			return false, nil
		case line == "":
			return knows, nil
		case isRefs:
			knows = strings.Contains(" "+values+" ", " unborn ")
		}
	}
	return false, ended(lines)
}

// headOf reads an answer to askHead.
func headOf(r io.Reader) (branch string, err error) {
	lines := pktline.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSuffix(string(lines.Bytes()), "\n")
		if line == "" {
			return branch, nil
		}
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[1] != "HEAD" {
			continue
		}
		for _, f := range fields[2:] {
			if to, ok := strings.CutPrefix(f, "symref-target:"+heads); ok {
				branch = to
			}
		}
	}
	return "", ended(lines)
}

// ended is the error of an answer without its end.
func ended(lines *pktline.Scanner) error {
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// dialogueV2 is a session over SSH or git://.
type dialogueV2 struct{ *dialogue.Session }

func (d *dialogueV2) ask(_ context.Context, question []byte) error {
	_, err := d.Write(question)
	return err
}

func (s overSSH) second(ctx context.Context) (version2, error) {
	one, err := s.Version2(ctx)
	if err != nil {
		return nil, translate(ctx, err)
	}
	return &dialogueV2{one}, nil
}

func (g overGit) second(ctx context.Context) (version2, error) {
	one, err := g.Version2(ctx)
	if err != nil {
		return nil, translate(ctx, err)
	}
	return &dialogueV2{one}, nil
}

// httpV2 is two requests: one for the server's capabilities, and the question.
type httpV2 struct {
	io.ReadCloser // the last answer
	h             *overHTTP
	at            string // the URL before "/git-upload-pack"
}

const askV2 = "version=2"

func (h *overHTTP) second(ctx context.Context) (version2, error) {
	answer, err := h.send(ctx, http.MethodGet, h.url+"/info/refs?service=git-upload-pack", nil)
	if err != nil {
		return nil, translate(ctx, err)
	}
	switch status := answer.StatusCode; {
	case status == http.StatusOK:
	case status >= 500 || status == http.StatusTooManyRequests:
		answer.Body.Close()
		return nil, &Error{Kind: providers.ErrUnavailable, Code: fmt.Sprint(status), Err: fmt.Errorf("the server answers %s", answer.Status)}
	default: // Ask had an answer in version 0: the server has no version 2
		answer.Body.Close()
		return nil, nil
	}
	at, _, ok := strings.Cut(answer.Request.URL.String(), "/info/refs")
	if !ok {
		answer.Body.Close()
		return nil, foreign(answer, "redirected to another question")
	}
	return &httpV2{answer.Body, h, at}, nil
}

func (c *httpV2) ask(ctx context.Context, question []byte) error {
	answer, err := c.h.send(ctx, http.MethodPost, c.at+"/git-upload-pack", question)
	if err != nil {
		return err
	}
	c.ReadCloser.Close()
	c.ReadCloser = answer.Body
	if answer.StatusCode != http.StatusOK {
		return errors.New("the server answers " + answer.Status)
	}
	return nil
}

// send makes one request. Credentials go to the server that they are for, and not along
// with a redirect to another.
func (h *overHTTP) send(ctx context.Context, method, url string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("the repository's URL: %w", providers.ErrInvalid) // the URL may hold a secret
	}
	req.Header.Set("Git-Protocol", askV2)
	if body != nil {
		req.Header.Set("Content-Type", "application/x-git-upload-pack-request")
		req.Header.Set("Accept", "application/x-git-upload-pack-result")
	}
	if h.o.Credentials != nil && strings.HasPrefix(url, h.url+"/") {
		user, password, err := Login(ctx, h.o.Credentials)
		if err != nil {
			return nil, err
		}
		req.SetBasicAuth(user, password)
	}
	client := &http.Client{Transport: genuine{h.o.Transport}, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if first := via[0]; method != http.MethodGet || len(via) > 5 || first.URL.Scheme == "https" && next.URL.Scheme != "https" {
			return fmt.Errorf("not followed: %w", providers.ErrPermission)
		} else if next.URL.Host != first.URL.Host {
			next.Header.Del("Authorization")
		}
		return nil
	}}
	return client.Do(req)
}
