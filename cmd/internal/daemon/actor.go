package daemon

import (
	"cmp"
	"sync"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/mountspec"
)

// An actor is the operator, turn and conversation that change a working copy now, according to the
// events. The history of the working copy, and its commits, name them.
type actor struct {
	tell func(cache.Actor) // the history

	mu sync.Mutex // guards acting
	acting
}

// acting is the state of an actor.
type acting struct {
	operator     string // the operator named by the events: a configured identity, or free text
	turn         string // the turn under way, "" between turns
	conversation string // the conversation under way
	inTurn       bool   // between turn-start and turn-end
}

// follow notes the turn and the conversation that an event belongs to, and the
// operator of the changes from now on.
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

// ended forgets a turn or a conversation that is over, once it has been committed.
// Later changes follow the event, and are part of neither.
func (a *actor) ended(name mountspec.Trigger) {
	switch name {
	case mountspec.EventConversationEnd:
		a.change(name, func(now *acting) { now.conversation, now.turn = "", "" })
	case mountspec.EventTurnEnd, mountspec.EventTurnError:
		a.change(name, func(now *acting) { now.turn = "" })
	}
}

// change passes the actor after an event to the history.
func (a *actor) change(event mountspec.Trigger, f func(*acting)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.acting)
	a.tell(cache.Actor{Name: a.operator, Event: string(event), Turn: a.turn, Conversation: a.conversation})
}

// now returns the present state.
func (a *actor) now() acting {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.acting
}

// who returns the fields of the present state that a commit names.
func (a *actor) who() (operator, turn, conversation string) {
	now := a.now()
	return now.operator, now.turn, now.conversation
}
