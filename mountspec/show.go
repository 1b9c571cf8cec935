package mountspec

import "strconv"

// show quotes an untrusted value for a message: escaped, short, and not at all
// when it looks like a credential.
func show(s string) string {
	const limit = 60
	if credentialShape(s) != "" {
		return "[redacted]"
	}
	if len(s) > limit {
		return strconv.QuoteToASCII(s[:limit]) + "..."
	}
	return strconv.QuoteToASCII(s)
}
