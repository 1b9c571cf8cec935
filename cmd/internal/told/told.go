// Package told words errors of stores and of secrets in a line each: the thing and the
// cause, once, without the texts of the layers between.
//
//	e.What = r.Address.String() + ": " + told.Store("https://minio.acme.test", err)
//	isSecret := told.Secrets(e, err)
package told

import (
	"errors"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/mountspec/secrets"
	"github.com/wsmount/wsmount/providers"
)

// Store words an error of the store at a place; an error of no provider stays as it is.
func Store(place string, err error) string {
	var p *providers.Error
	if !errors.As(err, &p) {
		return err.Error()
	}
	return place + ": " + p.Reason()
}

// unavailable is the text of package host before secrets that are not available.
const unavailable = "its credentials are not available"

// Secrets has e, whose text has that of err, name the unavailable secrets, if err is about
// some: one in its own line, and of several each in another.
func Secrets(e *exit.Error, err error) (is bool) {
	var lines []string
	all := secrets.All(err)
	for _, s := range all {
		if line := s.Line(); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return false
	}
	says := secrets.Code + ": " + all[0].Error()
	if e.Advice = all[0].Hint; len(lines) > 1 {
		says, e.Details = unavailable, append(e.Details, lines...)
		e.Advice = "`wsmount help config` says of secrets and allow_env how each is granted"
	}
	e.What = strings.Replace(strings.Replace(e.What, unavailable+": ", "", 1), err.Error(), says, 1)
	return true
}
