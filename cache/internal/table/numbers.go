package table

// numbers gives inode numbers and places in the order of changes, each once for ever. It
// reserves them in blocks ahead of need, in commits of their own that are on the disk
// before the first number of a block is given: so not even a power cut, after which a
// content file may exist without a record, makes a number come again.
type numbers struct {
	ino, seq  counter
	reserving chan error // a reservation under way; nil: none
}

// counter gives the numbers from next on, up to limit without limit. Those below reserved
// will be up for use when the reservation under way is done.
type counter struct{ next, limit, reserved uint64 }

// numberBlock is how many numbers are reserved at once. A crash leaves up to
// twice as many unused, out of 2^48 that a node id has room for.
const numberBlock = 16384

const numbersVersion = 1

// Alloc gives an inode number that was never given before, nor will be.
func (t *Table) Alloc() Ino { return t.take(&t.numbers.ino) }

// NextSeq gives a number for Name.Seq, greater than all before. It will not be
// given again.
func (t *Table) NextSeq() uint64 { return t.take(&t.numbers.seq) }

func (t *Table) take(c *counter) uint64 {
	t.numbers.poll()
	if c.limit-c.next <= numberBlock/2 {
		t.numbers.reserve(t)
	}
	for c.next == c.limit && t.Err() == nil {
		t.numbers.reserve(t)
		t.numbers.wait()
	}
	n := c.next
	c.next++
	c.limit = max(c.limit, c.next) // after a failure they are still unique in this process
	return n
}

func (t *Table) readNumbers() {
	ino, seq := Root+1, uint64(1)
	if record, closer := t.read(keyNumbers); closer != nil {
		defer closer.Close()
		d := decode(record, numbersVersion)
		ino, seq = d.uint(), d.uint()
		if err := d.end(); err != nil {
			t.damaged("numbers: %w", err)
		}
	}
	t.numbers.ino = counter{next: ino, limit: ino}
	t.numbers.seq = counter{next: seq, limit: seq}
}

// reserve starts a reservation for the counters that are short, unless one runs.
func (n *numbers) reserve(t *Table) {
	if n.reserving != nil || t.Err() != nil {
		return
	}
	for _, c := range []*counter{&n.ino, &n.seq} {
		c.reserved = c.limit
		if c.limit-c.next <= numberBlock/2 {
			c.reserved = c.limit + numberBlock
		}
	}
	b := t.db.NewBatch()
	err := b.Set(keyNumbers, encodeNumbers(n.ino.reserved, n.seq.reserved), nil)
	if err != nil {
		t.fail(err)
		return
	}
	if t.apply(b) != nil {
		return
	}
	done := make(chan error, 1)
	n.reserving = done
	ino, seq := n.ino.reserved, n.seq.reserved
	go func() {
		err := t.Sync()
		if err == nil {
			t.setGuard(ino, seq)
		}
		done <- err
	}()
}

func encodeNumbers(ino, seq uint64) []byte {
	e := encoder{numbersVersion}
	e.uint(ino)
	e.uint(seq)
	return e
}

// poll takes the result of a reservation, if there is one.
func (n *numbers) poll() {
	if n.reserving == nil {
		return
	}
	select {
	case err := <-n.reserving:
		n.done(err)
	default:
	}
}

// wait waits for the reservation that runs.
func (n *numbers) wait() {
	if n.reserving != nil {
		n.done(<-n.reserving)
	}
}

func (n *numbers) done(err error) {
	n.reserving = nil
	if err != nil {
		return // and the table has failed
	}
	n.ino.limit, n.seq.limit = n.ino.reserved, n.seq.reserved
}

// keepNumbers puts the next numbers into the batch, so that a clean end wastes
// none.
func (t *Table) keepNumbers() {
	t.write(keyNumbers, encodeNumbers(t.numbers.ino.next, t.numbers.seq.next))
}
