package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// A gate lets one browser in, and no other client that can reach a port of this machine, such
// as its other users, and pages of other sites in a browser.
//
//   - The address that is printed has a token, which is exchanged once for a cookie that no
//     script can read and no other site can have sent.
//   - A request must name this address as its host: the name of another site that was made to
//     lead here (DNS rebinding) is refused.
//   - A request that changes something must come from a page of this address: browsers send
//     the address of the form in Origin, with its port, which cookies ignore.
//   - A page loads nothing from other addresses, runs no inline script, and is shown in no
//     frame.
//
// Cookies ignore ports: the cookie has the port in its name, and a server on another port of
// 127.0.0.1 that the same browser opens is sent it. On a machine with untrusted servers, use
// a browser profile of its own.
type gate struct {
	host, local string // by which it is called
	cookie      string // its name
	session     string

	mu    sync.Mutex // guards token
	token string     // "": it was used
}

func newGate(port int) *gate {
	return &gate{host: fmt.Sprintf("127.0.0.1:%d", port), local: fmt.Sprintf("localhost:%d", port),
		cookie: fmt.Sprintf("wsmount-ui-%d", port), session: rand.Text(), token: rand.Text()}
}

// address is the address that lets one browser in, once.
func (g *gate) address() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return "http://" + g.host + "/open?token=" + g.token
}

const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// maxForm bounds the size of a form.
const maxForm = 64 << 10

// guard answers requests that are not admitted, with refuse, and passes all others on.
func (g *gate) guard(next http.Handler, refuse func(w http.ResponseWriter, r *http.Request, why *exit.Error)) http.Handler {
	files := http.FileServerFS(assets)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin") // with "no-referrer" a form would not say where it stands
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case r.Host != g.host && r.Host != g.local:
			http.Error(w, "this page is served at http://"+g.host+" only", http.StatusForbidden)
		case strings.HasPrefix(r.URL.Path, "/assets/"):
			files.ServeHTTP(w, r)
		case r.URL.Path == "/open":
			g.open(w, r, refuse)
		case !g.knows(r):
			refuse(w, r, exit.New(exit.Denied, "this browser was not let in").
				Hint("open the address that `wsmount ui` has printed, in one browser; its page is /"))
		case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Header.Get("Origin") != "http://"+r.Host:
			refuse(w, r, exit.New(exit.Denied, "what changes something is only taken from a page of this address").
				Hint("go to / and do it there"))
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			next.ServeHTTP(w, r)
		}
	})
}

func (g *gate) knows(r *http.Request) bool {
	c, err := r.Cookie(g.cookie)
	return err == nil && same(c.Value, g.session)
}

// same compares secrets without telling by the time it takes how much is right.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// open exchanges the token for the cookie.
func (g *gate) open(w http.ResponseWriter, r *http.Request, refuse func(http.ResponseWriter, *http.Request, *exit.Error)) {
	if r.Method != http.MethodGet {
		http.Error(w, "GET is needed", http.StatusMethodNotAllowed)
		return
	}
	if !g.take(r.URL.Query().Get("token")) {
		if g.knows(r) { // a browser that shows its first page again
			onward(w)
			return
		}
		refuse(w, r, exit.New(exit.Denied, "this address lets one browser in, once, and was used, or is not the one that was printed").
			Hint("end `wsmount ui` with Ctrl-C, start it again, and open the address that it prints then"))
		return
	}
	http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	onward(w)
}

// take says whether a token is the one, which it is only once.
func (g *gate) take(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token == "" || !same(token, g.token) {
		return false
	}
	g.token = ""
	return true
}

// onward sends a browser to the page. It is not redirected: after a link from elsewhere, such
// as the file that --open writes, it would not send the cookie along.
func onward(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, `<!doctype html><html lang="en"><title>wsmount</title><meta http-equiv="refresh" content="0;url=/"><p><a href="/">Go on to the page</a></p>`)
}

//go:embed assets
var assets embed.FS
