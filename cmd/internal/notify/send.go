package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/mountspec/host/hook"
	"github.com/wsmount/wsmount/mountspec/host/program"
	"github.com/wsmount/wsmount/mountspec/netguard"
)

// pauses are those between the tries of one notice; after the last it is given up.
var pauses = []time.Duration{time.Second, 10 * time.Second, time.Minute, 5 * time.Minute}

// queued is how many notices wait for one hook.
const queued = 100

// A sender sends to one hook, one notice after the other.
type sender struct {
	hook   hook.Hook
	name   string // of the hook, which no other has
	o      *Options
	queue  chan Notice
	ctx    context.Context // of each try
	cancel context.CancelFunc
	again  context.Context // of a try after one that failed; it ends with ctx
	noMore context.CancelFunc
	done   chan struct{} // closed when it has ended

	mu sync.Mutex // guards is
	is control.Hook
}

func startSender(name string, h hook.Hook, o *Options) *sender {
	s := &sender{hook: h, name: name, o: o, queue: make(chan Notice, queued), done: make(chan struct{}), is: control.Hook{Name: name}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.again, s.noMore = context.WithCancel(s.ctx)
	go s.run()
	return s
}

// offer queues a notice, or counts that there was no room for it.
func (s *sender) offer(n Notice) {
	select {
	case s.queue <- n:
	default:
		s.noted(func(is *control.Hook) { is.Lost++ })
	}
}

// end has the sender end after the queued notices, each tried once.
func (s *sender) end() {
	s.noMore()
	close(s.queue)
}

func (s *sender) run() {
	defer close(s.done)
	defer s.cancel()
	for n := range s.queue {
		s.deliver(n)
	}
}

// deliver tries a notice until it has arrived, or is given up.
func (s *sender) deliver(n Notice) {
	for try := 0; ; try++ {
		err := s.send(n)
		if err == nil {
			s.noted(func(is *control.Hook) { is.Delivered, is.Error, is.Since = is.Delivered+1, "", time.Time{} })
			return
		}
		last := errors.Is(err, errRefused) || try == len(pauses) || !s.wait(try)
		s.o.Log.Warn("a hook could not be told", "hook", s.name, "event", n.Event, "id", n.ID, "last", last, "err", err)
		s.noted(func(is *control.Hook) {
			if is.Error = err.Error(); is.Since.IsZero() {
				is.Since = s.o.Now()
			}
			if last {
				is.Lost++
			}
		})
		if last {
			return
		}
	}
}

// wait waits for the next try, and reports whether there is to be one.
func (s *sender) wait(try int) bool {
	return s.again.Err() == nil && s.o.pause(s.again, pauses[try]) == nil
}

func (s *sender) noted(change func(*control.Hook)) {
	s.mu.Lock()
	change(&s.is)
	s.mu.Unlock()
	s.o.Changed()
}

func (s *sender) status() control.Hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.is
	is.Waiting = len(s.queue)
	return is
}

// errRefused says that trying again would not help.
var errRefused = errors.New("refused")

func (s *sender) send(n Notice) error {
	body, err := exactjson.Marshal(n)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.hook.Timeout)
	defer cancel()
	if len(s.hook.Command) > 0 {
		return program.Program{Argv: s.hook.Command, Lookup: s.o.Lookup, Timeout: s.hook.Timeout}.Run(ctx, bytes.NewReader(append(body, '\n')), nil)
	}
	err = s.post(ctx, body)
	if ctx.Err() != nil && s.ctx.Err() == nil {
		return fmt.Errorf("it did not answer within %s", s.hook.Timeout)
	}
	return err
}

// post calls a webhook. No error shows more of its URL than the host configuration does.
func (s *sender) post(ctx context.Context, body []byte) error {
	to, token := s.hook.URL, ""
	for _, secret := range []struct {
		slug  string
		value *string
	}{{s.hook.URLFrom, &to}, {s.hook.Credentials, &token}} {
		if secret.slug == "" {
			continue
		}
		var err error
		if *secret.value, err = s.o.Secret(ctx, secret.slug); err != nil {
			return err
		}
	}
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || !hook.CheckScheme(u, token != "") {
		return fmt.Errorf("its secret is no URL of https: %w", errRefused)
	}
	transport, err := s.o.Transport(to)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("its URL cannot be asked: %w", errRefused)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "wsmount")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return s.hidden(u, err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // its body does not matter
	return judge(resp.StatusCode)
}

// judge turns an answer's status into an error.
func judge(code int) error {
	err := fmt.Errorf("it answered %d %s", code, http.StatusText(code))
	switch {
	case code/100 == 2:
		return nil
	case code/100 == 5, code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		return err
	}
	return fmt.Errorf("%w: %w", err, errRefused)
}

// hidden removes the parts of a URL that the host configuration keeps secret from an error.
func (s *sender) hidden(u *url.URL, err error) error {
	var outer *url.Error // has the whole URL
	if errors.As(err, &outer) {
		err = outer.Err
	}
	if errors.Is(err, netguard.ErrDenied) {
		err = fmt.Errorf("%w: %w", err, errRefused)
	}
	if s.hook.URLFrom == "" {
		return err
	}
	text := strings.ReplaceAll(err.Error(), u.Hostname(), "its host")
	if errors.Is(err, errRefused) {
		return fmt.Errorf("%s: %w", text, errRefused)
	}
	return errors.New(text)
}
