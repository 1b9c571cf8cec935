package git

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// Commit implements providers.Committer. Content is read and deflated before
// the head is held.
func (p *Provider) Commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	return do(ctx, p, providers.MethodCommit, providers.Locator{}, func() (providers.CommitResult, error) {
		return p.sets.commit(ctx, set)
	})
}

// committer makes commits of change sets.
type committer struct {
	repo  *repository
	head  *head
	email string // of commits without an author
	now   func() time.Time
}

func (c committer) commit(ctx context.Context, set providers.ChangeSet) (result providers.CommitResult, err error) {
	b, err := c.repo.objects.NewBatch()
	if err != nil {
		return result, err
	}
	defer b.Abandon()
	w := newBodies(ctx, c.repo, c.head.now.Load().root, b, set.Changes)
	defer w.release()
	if err := w.all(); err != nil {
		return result, err
	}
	m := c.head.hold()
	defer m.release()
	if m.closed.Load() {
		return result, providers.ErrClosed
	}
	return c.commitBatch(m, set, b, w)
}

func putBody(ctx context.Context, b *odb.Batch, body providers.Body) (at blob, err error) {
	if body.Reader == nil {
		body.Size = max(body.Size, 0)
	}
	if body.Size > maxFile {
		return at, tooLarge(body.Size)
	}
	if body.Size == providers.SizeUnknown { // an object begins with its size
		var content bytes.Buffer
		at.size, err = body.CopyTo(ctx, &most{&content, maxFile})
		if err != nil {
			return at, err
		}
		at.id, err = b.Add(odb.Blob, content.Bytes())
		return at, err
	}
	at.size = body.Size
	at.id, err = b.Put(odb.Blob, body.Size, func(w io.Writer) error {
		_, err := body.CopyTo(ctx, w)
		return err
	})
	return at, err
}

func tooLarge(size int64) error {
	return fmt.Errorf("%d bytes, at most %d are taken: %w", size, maxFile, providers.ErrTooLarge)
}

// most takes up to n bytes.
type most struct {
	w io.Writer
	n int64
}

func (m *most) Write(b []byte) (int, error) {
	if m.n -= int64(len(b)); m.n < 0 {
		return 0, fmt.Errorf("more than %d bytes: %w", maxFile, providers.ErrTooLarge)
	}
	return m.w.Write(b)
}

// commitBatch makes a set whose content is in a batch.
func (c committer) commitBatch(m moving, set providers.ChangeSet, b *odb.Batch, w *bodies) (result providers.CommitResult, err error) {
	head := m.now.Load()
	if result, known, err := m.decide(set); known {
		return result, err
	}
	parents, merges, err := c.parents(set, head.commit)
	if err != nil {
		return result, err
	}
	r, err := w.run(head.root)
	if err != nil {
		return result, err
	}
	if result.Entries, err = r.do(); err != nil {
		return providers.CommitResult{}, err
	}
	tree, err := r.after.root.Save(b)
	if err != nil {
		return providers.CommitResult{}, err
	}
	if tree == head.root && !merges {
		result.Revision = revision(head.commit)
		return result, nil
	}
	made, err := b.Add(odb.Commit, c.describe(set, tree, parents).Encode())
	if err != nil {
		return providers.CommitResult{}, err
	}
	o := outcome{From: head.commit.String(), To: made.String(), Op: set.Op, Entries: result.Entries}
	if err := m.move(o, head.commit, made, b.Finish); err != nil {
		return providers.CommitResult{}, err
	}
	result.Revision, result.Committed = revision(made), true
	return result, nil
}

// parents are those of the next commit. merges reports that the commit is needed even if nothing
// changes.
func (c committer) parents(set providers.ChangeSet, head id) (parents []id, merges bool, err error) {
	if !head.IsZero() {
		parents = append(parents, head)
	}
	if set.Merge == "" {
		return parents, false, nil
	}
	merge, err := c.repo.commitOf(set.Merge)
	if err != nil {
		return nil, false, err
	}
	if !head.IsZero() {
		is, err := c.repo.isAncestor(merge, head)
		if err != nil || is {
			return parents, false, err
		}
	}
	return append(parents, merge), true, nil
}

// describe is the commit of a set.
func (c committer) describe(set providers.ChangeSet, tree id, parents []id) object.Commit {
	who := c.signature(set.Author)
	return object.Commit{Tree: tree, Parents: parents, Author: who, Committer: who, Message: message(set)}
}

// signature is an author as git has it, wsmount itself if there is none.
func (c committer) signature(a providers.Identity) object.Signature {
	s := object.Signature{Name: a.Name, Email: a.Email, When: a.When}
	if object.Clean(s.Email) == "" {
		s.Email = cmp.Or(c.email, "wsmount@localhost")
	}
	if object.Clean(s.Name) == "" {
		s.Name, _, _ = strings.Cut(s.Email, "@")
	}
	if s.When.IsZero() {
		s.When = c.now()
	}
	return s
}

// message is the message of a set with its trailers: a paragraph of lines at
// the end, of which none is there twice or can be mistaken for another.
func message(set providers.ChangeSet) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(strings.ReplaceAll(set.Message, "\x00", "")))
	if b.Len() == 0 {
		b.WriteString("Update files")
	}
	b.WriteString("\n")
	said := map[string]bool{trailer("Co-authored-by", person(set.Author)): true}
	first := true
	add := func(line string) {
		if said[line] {
			return
		}
		if said[line] = true; first {
			b.WriteString("\n")
		}
		first = false
		b.WriteString(line)
	}
	for _, other := range set.CoAuthors {
		if object.Clean(other.Email) != "" && !strings.EqualFold(other.Email, set.Author.Email) {
			add(trailer("Co-authored-by", person(other)))
		}
	}
	for _, t := range set.Trailers {
		add(trailer(t.Name, t.Value))
	}
	return b.String()
}

func person(i providers.Identity) string {
	return object.Clean(i.Name) + " <" + object.Clean(i.Email) + ">"
}

func trailer(name, value string) string {
	words := strings.FieldsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	return name + ": " + strings.Join(words, " ") + "\n"
}

// Write implements providers.Provider: it is a set of one change.
func (p *Provider) Write(ctx context.Context, l providers.Locator, body providers.Body, opts providers.WriteOptions) (providers.Info, error) {
	c := providers.Change{Locator: l, Body: body, If: opts.If, Kind: opts.Kind, Attr: opts.Attr}
	result, err := p.single(ctx, providers.MethodWrite, c)
	if err != nil {
		return providers.Info{}, err
	}
	return result.Entries[0], nil
}

// Delete implements providers.Provider: it is a set of one change.
func (p *Provider) Delete(ctx context.Context, l providers.Locator, opts providers.DeleteOptions) error {
	_, err := p.single(ctx, providers.MethodDelete,
		providers.Change{Locator: l, Delete: true, If: opts.If, Dir: opts.If.Kind == providers.ConditionDir})
	return err
}

func (p *Provider) single(ctx context.Context, m providers.Method, c providers.Change) (providers.CommitResult, error) {
	return do(ctx, p, m, c.Locator, func() (providers.CommitResult, error) {
		return p.sets.commit(ctx, providers.ChangeSet{Message: fmt.Sprintf("%s %s", m, c.Locator), Changes: []providers.Change{c}})
	})
}

// Mkdir implements providers.Provider: git knows no directory without entries.
func (p *Provider) Mkdir(ctx context.Context, l providers.Locator, _ providers.MkdirOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodMkdir, l, func() (providers.Info, error) {
		return providers.Info{}, providers.ErrUnsupported
	})
}
