// Package told says what became of a store and of secrets in a line each: the thing and the
// cause, once, without the words of what the error came through.
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

// Store is an error of a store that lies at a place, or as it is if a provider has not said it.
func Store(place string, err error) string {
	var p *providers.Error
	if !errors.As(err, &p) {
		return err.Error()
	}
	return place + ": " + p.Reason()
}

// unavailable is what package host says before the secrets that are not.
const unavailable = "its credentials are not available"

// Secrets has e, which says err, tell the secrets that are not available, if err is about
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
