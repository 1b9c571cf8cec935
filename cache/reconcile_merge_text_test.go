package cache

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// text is lines, of which some are changed.
func text(changed ...string) string {
	var b strings.Builder
	for i := range 9 {
		line := fmt.Sprint("line ", i)
		for _, c := range changed {
			if at, to, _ := strings.Cut(c, "="); at == fmt.Sprint(i) {
				line = to
			}
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// under is a clone whose file f was changed here and is under a policy.
func under(t *testing.T, policy Conflict, content string, change func(c *clone)) *clone {
	t.Helper()
	c := newClone(t, seeded(t, "f", content), held(policy))
	c.get("f")
	change(c)
	return c
}

func ours(content string) func(c *clone) {
	return func(c *clone) { c.ok(c.put("f", content)) }
}

// A text that was changed here and there in other lines gets both changes, be
// ours committed or not, and what comes of it goes out.
func TestCombine(t *testing.T) {
	for _, policy := range []Conflict{Combine, Markers} {
		for name, commit := range map[string]bool{"not committed": false, "committed": true} {
			t.Run(fmt.Sprint(policy, name), func(t *testing.T) {
				c := under(t, policy, text(), ours(text("1=ours")))
				reader := c.open("f", syscall.O_RDONLY)
				if commit {
					c.commit()
				}
				c.there("f", text("7=theirs"))
				r := c.pull()
				assert.True(t, r.Changed != 0 && len(r.Conflicts) == 0, "report", r)
				want := text("1=ours", "7=theirs")
				c.sees("f: " + want)
				assert.Equal(t, c.read(reader), text("1=ours"), "who has it open")
				reader.File.Release()
				c.commit()
				c.push()
				assert.Equal(t, there(c.remote), "f: "+want, "there")
			})
		}
	}
}

// Commits that were not pushed stay commits, each with its message, on top of
// what others pushed, and what was not committed stays here.
func TestCommitsStayCommits(t *testing.T) {
	c := newClone(t, seeded(t, "f", text()), held(Combine))
	for i := range 2 {
		c.ok(c.put("f", strings.Replace(c.get("f"), fmt.Sprintf("line %d", 2*i), "ours", 1)))
		c.ok(assert.ErrOf(c.v.Commit(t.Context(), CommitOptions{Message: fmt.Sprint("ours ", i)})))
	}
	c.ok(c.put("new", "not committed"))
	c.ok(c.put("f", text("0=ours", "2=ours", "4=not committed")))
	c.there("f", text("7=theirs"))
	c.push()
	c.sees("f: "+text("0=ours", "2=ours", "4=not committed", "7=theirs"), "new: not committed")
	var messages []string
	for _, l := range c.remote.Log("main")[:3] {
		messages = append(messages, l.Message)
	}
	assert.Slice(t, messages[:2], []string{"ours 1", "ours 0"}, "the commits", messages)
	assert.Equal(t, there(c.remote), "f: "+text("0=ours", "2=ours", "7=theirs"), "there")
	c.unpushed(0)
}

// What others have committed too is no commit of ours any more.
func TestCommitThatOthersMadeToo(t *testing.T) {
	c := under(t, Combine, text(), ours(text("1=both")))
	c.commit()
	c.there("f", text("1=both", "7=theirs"))
	c.pull()
	c.sees("f: " + text("1=both", "7=theirs"))
	u := c.v.Status().Unpushed
	assert.True(t, u == nil || u.Commits == 0, "not pushed", u)
	c.push()
	assert.Equal(t, len(c.remote.Log("main")), 2, "commits")
}

// What cannot be merged is held, and does not hold up the rest.
func TestCombineCannot(t *testing.T) {
	w := under(t, Combine, text(), ours(text("4=ours")))
	w.ok(w.put("g", "another"))
	w.there("f", text("4=theirs"))
	assert.Equal(t, len(w.pull().Conflicts), 1)
	w.sees("f: "+text("4=ours"), "g: another")
	assert.Equal(t, len(w.commit().HeldBack), 1, "held back")
	w.push()
	assert.Contains(t, there(w.remote), "g: another")
	w.side("f", SideBase, text())
	w.side("f", SideTheirs, text("4=theirs"))
}

// A file that is being written while others' change comes is merged when it was
// closed, though what it began from is not the head any more; over a kill too.
func TestCombineAfterTheWriter(t *testing.T) {
	for name, then := range map[string]func(c *clone){"at once": func(*clone) {}, "after a kill": func(c *clone) { c.killed() }} {
		t.Run(name, func(t *testing.T) {
			c := under(t, Combine, text(), ours(text("1=ours")))
			o := c.open("f", syscall.O_WRONLY)
			c.there("f", text("7=theirs"))
			c.pull()
			c.there("g", "later")
			c.pull()
			c.sees("f: "+text("1=ours"), "g: later")
			c.writeLast(o, text("1=OURS"), 0)
			then(c)
			c.commit()
			c.push()
			c.sees("f: "+text("1=OURS", "7=theirs"), "g: later")
		})
	}
}

// Attributes come from who changed them, however the texts come together, when ours are committed:
// also when the commit must be taken back, because another file of it cannot be put on top of
// theirs.
func TestCombineMode(t *testing.T) {
	for name, mine := range map[string]string{"text too": text("1=ours"), "mode only": "", "part of theirs": text("7=theirs")} {
		for _, takenBack := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, taken back %v", name, takenBack), func(t *testing.T) {
				want := text("7=theirs", "3=theirs")
				c := newClone(t, seeded(t, "f", text(), "z", "z"), held(Combine))
				c.get("f")
				if mine != "" {
					c.ok(c.put("f", mine))
				}
				if mine == text("1=ours") {
					want = text("1=ours", "7=theirs", "3=theirs")
				}
				c.do("chmod f 755")
				if takenBack {
					c.ok(c.put("z", "ours"))
				}
				c.commit()
				c.there("f", text("7=theirs", "3=theirs"))
				if takenBack {
					c.there("z", "theirs")
				}
				c.pull()
				assert.Equal(t, c.get("f"), want, "content")
				assert.Equal(t, c.mode("f"), 0o755, "mode")
				c.commit()
				c.push()
				assert.True(t, c.remoteAttr("f").Mode&0o100 != 0, "it cannot be executed there")
			})
		}
	}
}
