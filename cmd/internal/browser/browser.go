// Package browser opens a user's browser at an address that others must not see.
//
//	opened, err := browser.Open(url)
//	defer opened.Close()
//
// The address stands in no command line, which each user of the machine can read: the browser
// is given a file that only this user can read, and which leads to it.
package browser

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/wsmount/wsmount/cmd/internal/exit"
)

const opener = "xdg-open"

// Likely reports whether there is a desktop with a browser.
func Likely() bool {
	_, err := exec.LookPath(opener)
	return err == nil && (os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "")
}

// Opened is a browser that was opened. The zero value is none.
type Opened struct{ dir string }

// Close removes the file that leads to the address. The browser goes on.
func (o Opened) Close() {
	if o.dir != "" {
		_ = os.RemoveAll(o.dir) // by then it leads nowhere
	}
}

// Open has the desktop open a browser, and does not wait for it.
func Open(url string) (o Opened, err error) {
	if o.dir, err = os.MkdirTemp("", "wsmount-ui-"); err != nil { // of which others see nothing
		return o, exit.New(exit.Failed, "the browser cannot be led to the page: %w", err).Hint("open the address by hand")
	}
	file := filepath.Join(o.dir, "page.html")
	text := fmt.Sprintf("<!doctype html><title>wsmount</title><meta http-equiv=\"refresh\" content=\"0;url=%[1]s\"><p><a href=\"%[1]s\">Go on to the page</a></p>\n", html.EscapeString(url))
	err = os.WriteFile(file, []byte(text), 0o600)
	if err == nil {
		cmd := exec.Command(opener, file)
		if err = cmd.Start(); err == nil {
			go func() { _ = cmd.Wait() }() // it goes on by itself
			return o, nil
		}
	}
	o.Close()
	return Opened{}, exit.New(exit.Failed, "no browser could be opened: %w", err).Hint("open the address by hand; --no-open opens none")
}
