package statustext

import (
	"fmt"
	"time"
)

// agoText says when a store last gave or took something.
func agoText(t, now time.Time) string {
	if t.IsZero() {
		return "none since it was mounted"
	}
	return Age(t, now) + " ago, at " + t.Local().Format(time.DateTime)
}

// Note is a text in brackets behind another, when there is one.
func Note(when bool, text string) string {
	if !when || text == "" {
		return ""
	}
	return " (" + text + ")"
}

// unless is a reason behind a text, unless it was said.
func unless(said bool, reason string) string {
	if said {
		return ""
	}
	return ": " + reason
}

// Age is how long ago a time was, in its largest unit.
func Age(t, now time.Time) string {
	d := now.Sub(t)
	switch {
	case t.IsZero() || d < 0:
		return ""
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Plural is one of two texts, for one thing and for any other number of them.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Count is a number of things.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
