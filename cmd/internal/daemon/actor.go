package daemon

import (
	"cmp"
	"sync"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/mountspec"
)

// An actor is who changes a working copy now, as the events tell: whose turn of which
// conversation it is. The history of the working copy, and its commits, name it.
type actor struct {
	tell func(cache.Actor) // the history

	mu sync.Mutex // guards acting
	acting
}

// acting is what an actor knows.
type acting struct {
	operator     string // who the events speak for: a configured identity, or free text
	turn         string // the turn under way, "" between turns
	conversation string // the conversation under way
	inTurn       bool   // between turn-start and turn-end
}

// follow notes the turn and the conversation that an event belongs to, and on whose
// behalf the tree changes from now on.
func (a *actor) follow(name mountspec.Trigger, vars map[string]string) {
	a.change(name, func(now *acting) {
		now.conversation = cmp.Or(vars["conversationId"], now.conversation)
		now.turn = cmp.Or(vars["turnId"], now.turn)
		now.operator = cmp.Or(vars["operator"], now.operator)
		switch name {
		case mountspec.EventTurnStart:
			now.inTurn = true
		case mountspec.EventTurnEnd, mountspec.EventTurnError, mountspec.EventConversationEnd:
			now.inTurn = false
		}
	})
}

// ended forgets a turn or a conversation that is over, once it has been committed. What
// changes from then on follows the event, and is part of neither.
func (a *actor) ended(name mountspec.Trigger) {
	switch name {
	case mountspec.EventConversationEnd:
		a.change(name, func(now *acting) { now.conversation, now.turn = "", "" })
	case mountspec.EventTurnEnd, mountspec.EventTurnError:
		a.change(name, func(now *acting) { now.turn = "" })
	}
}

// change tells the history who acts after an event.
func (a *actor) change(event mountspec.Trigger, f func(*acting)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.acting)
	a.tell(cache.Actor{Name: a.operator, Event: string(event), Turn: a.turn, Conversation: a.conversation})
}

// now is who acts at this moment.
func (a *actor) now() acting {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.acting
}

// who is what a commit says of now.
func (a *actor) who() (operator, turn, conversation string) {
	now := a.now()
	return now.operator, now.turn, now.conversation
}
