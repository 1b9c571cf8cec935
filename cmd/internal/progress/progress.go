// Package progress shows a person at a terminal how far a mount has come with sending,
// or fetching: the share that is done, how fast it goes, and how long it will still take.
//
// It asks the daemon of the mount, and does nothing where there is no terminal, or one that
// cannot write a line anew.
//
//	defer progress.Show(ctx, record.SocketPath())()
package progress

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/bytesize"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/screen"
)

const (
	every  = 500 * time.Millisecond // is a line shown
	window = 10 * time.Second       // whose bytes give the rate
)

// Source reports how far something is.
type Source interface {
	Status(ctx context.Context) (control.Status, error)
	Work(ctx context.Context) (control.Work, error) // an error: it does not say
}

// Show writes how far the mount behind a control socket is, until stop is called.
func Show(ctx context.Context, socket string) (stop func()) {
	return Of(ctx, control.NewClient(socket))
}

// Of writes how far something is, until stop is called.
func Of(ctx context.Context, s Source) (stop func()) {
	if to := screen.Of(os.Stderr); to.Width == 0 || screen.Dumb() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		watch(ctx, s)
	}()
	return func() { cancel(); <-done }
}

func watch(ctx context.Context, from Source) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var m meters
	began, shown := time.Now(), false
	for {
		select {
		case <-ctx.Done():
			if shown {
				fmt.Fprint(os.Stderr, "\r\x1b[K")
			}
			return
		case <-tick.C:
		}
		s, err := from.Status(ctx)
		if err != nil {
			continue
		}
		work, _ := from.Work(ctx) // an older daemon does not say
		rewrite(m.line(s, work, began, time.Now()))
		shown = true
	}
}

// meters are those of bytes to the stores, and of bytes that a caller waits for.
type meters struct{ sends, fetches meter }

// line says how far a mount is.
func (m *meters) line(s control.Status, work control.Work, began, now time.Time) string {
	var names int
	var sent int64
	for _, p := range s.Parts {
		names += p.Unsaved.Names
		if p.Copy == nil {
			continue
		}
		for _, t := range p.Copy.InFlight {
			sent += t.Sent
		}
	}
	m.sends.see(max(s.UnsavedBytes-sent, 0), now)
	m.fetches.see(work.Fetch-work.Fetched, now)
	switch {
	case work.Fetch > 0:
		return m.fetches.text("fetched")
	case work.What != "": // a commit, which sends all at once
		text := fmt.Sprintf("%s %s%s", work.What, changes(work.Done, work.Total), percent(int64(work.Done), int64(work.Total)))
		if s.UnsavedBytes > 0 {
			text += ", " + bytesize.Text(s.UnsavedBytes)
		}
		return text
	case s.UnsavedBytes > 0 && names > 0:
		return m.sends.text("sent") + "; " + changes(names, names) + " to send"
	case s.UnsavedBytes > 0:
		return m.sends.text("sent")
	case names > 0:
		return changes(names, names) + " to send"
	}
	return "waiting for the store for " + now.Sub(began).Round(time.Second).String()
}

func changes(n, all int) string {
	text := many(all, "change")
	if n != all {
		text = fmt.Sprint(n, " of ", text)
	}
	return text
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprint(n, " ", what, "s")
}

// A meter computes the share that is done from repeated looks at the rest.
type meter struct {
	total, left int64
	seen        []seen // the last of it, the oldest first
}

type seen struct {
	at   time.Time
	done int64
}

// see notes the rest, in bytes. More than before is an addition, or
// a new beginning where nothing was left.
func (m *meter) see(left int64, now time.Time) {
	if m.left == 0 && left > 0 {
		m.total, m.seen = 0, nil
	}
	m.total += max(left-m.left, 0)
	m.left = left
	m.seen = append(m.seen, seen{now, m.total - left})
	for len(m.seen) > 2 && now.Sub(m.seen[1].at) >= window {
		m.seen = m.seen[1:]
	}
}

// text is like "45% of 700.0 MiB sent, 12.3 MiB/s, 31s left". Something has been seen.
func (m *meter) text(done string) string {
	text := fmt.Sprintf("%d%% of %s %s", 100*(m.total-m.left)/max(m.total, 1), bytesize.Text(m.total), done)
	first, last := m.seen[0], m.seen[len(m.seen)-1]
	return text + rate(last.done-first.done, m.left, last.at.Sub(first.at))
}

// Transfer says how far one is that takes so long already: "3.0 MiB of 4.0 MiB (75%), 1.0 MiB/s, 1s left".
func Transfer(sent, size int64, took time.Duration) string {
	return fmt.Sprintf("%s of %s%s%s", bytesize.Text(sent), bytesize.Text(size), percent(sent, size), rate(sent, size-sent, took))
}

func percent(done, all int64) string {
	if all <= 0 || done < 0 {
		return ""
	}
	return fmt.Sprintf(" (%d%%)", 100*min(done, all)/all)
}

// rate says how fast it goes, and how long the rest takes at that; "" before that is known.
func rate(bytes, left int64, took time.Duration) string {
	return speed(bytes, took) + timeLeft(bytes, left, took)
}

func speed(bytes int64, took time.Duration) string {
	if took < time.Second || bytes <= 0 {
		return ""
	}
	return fmt.Sprintf(", %s/s", bytesize.Text(int64(float64(bytes)/took.Seconds())))
}

// timeLeft is how long the rest takes, of bytes or anything else, at the speed so far.
func timeLeft(done, left int64, took time.Duration) string {
	if took < time.Second || done <= 0 || left <= 0 {
		return ""
	}
	return ", " + time.Duration(float64(left)/float64(done)*float64(took)).Round(time.Second).String() + " left"
}
