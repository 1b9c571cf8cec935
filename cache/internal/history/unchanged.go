package history

// Unchanged says that there is no record of a change by a turn, a conversation or an event.
type Unchanged struct {
	By  string // turn:11, as a person writes it
	Err error  // the kind of error
}

func (e Unchanged) Error() string { return e.By + " changed nothing that the history has" }

// Unwrap makes it an error of its Err.
func (e Unchanged) Unwrap() error { return e.Err }
