package screen

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Watch calls print again and again and shows changed text, until ctx ends or print
// fails. A terminal shows only the newest; elsewhere each stands below the one before.
func (s Screen) Watch(ctx context.Context, every time.Duration, print func(io.Writer) error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for before := ""; ; {
		if _, ok := s.Writer.(*os.File); ok { // its size may have changed
			s = Of(s.Writer)
		}
		var text strings.Builder
		err := print(Screen{&text, s.Width, s.Colours})
		begins := ""
		switch {
		case s.Width > 0 && !Dumb():
			begins = "\x1b[H\x1b[2J"
		case before != "":
			begins = "\n"
		}
		if text.Len() > 0 && text.String() != before {
			before = text.String()
			if _, broken := fmt.Fprint(s.Writer, begins, before); broken != nil {
				return broken
			}
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
