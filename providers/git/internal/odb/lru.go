package odb

import (
	"container/list"
	"sync"
)

// inflated is an object as it is.
type inflated struct {
	kind    Kind
	content []byte
}

// lru keeps what was used last, up to a number of bytes.
type lru struct {
	max int

	mu    sync.Mutex // guards what follows
	bytes int
	order list.List // of *kept, the one used last in front
	all   map[any]*list.Element
}

type kept struct {
	key any
	o   inflated
}

// overhead is what an entry costs beside its content.
const overhead = 200

func newLRU(max int) *lru { return &lru{max: max, all: map[any]*list.Element{}} }

func (c *lru) get(key any) (inflated, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.all[key]
	if !ok {
		return inflated{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*kept).o, true
}

// put keeps what is not so large that little else would have room.
func (c *lru) put(key any, o inflated) {
	if len(o.content) > c.max/2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.all[key]; ok {
		return
	}
	c.all[key] = c.order.PushFront(&kept{key, o})
	c.bytes += len(o.content) + overhead
	for c.bytes > c.max {
		e := c.order.Back()
		k := c.order.Remove(e).(*kept)
		delete(c.all, k.key)
		c.bytes -= len(k.o.content) + overhead
	}
}
