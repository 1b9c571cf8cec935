package providertest

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/providers"
)

var contentChecks = []Check{
	{Name: "content/exact", Run: contentExact},
	{Name: "content/replaced", Run: contentReplaced},
	{Name: "content/size-unknown", Run: contentSizeUnknown},
	{Name: "content/size-wrong", Run: contentSizeWrong},
	{Name: "content/body-fails", Run: contentBodyFails},
	{Name: "content/large", Heavy: true, Run: contentLarge},
	{Name: "content/arguments-are-the-callers", Run: contentArguments},
}

func contentExact(t T, p providers.Provider) {
	for name, content := range map[string]string{
		"empty": "", "lf": "a\nb\n", "crlf": "a\r\nb\r\n", "cr": "a\rb\r", "open-end": "a\nb",
		"nul": "a\x00b", "utf8": "h\u00e9, \u6f22", "not-utf8": "\xff\xfe\x80", "bom": "\ufeffa", "space": " \n",
	} {
		l := loc("content/" + name)
		written := put(t, p, l, content)
		info := wantContent(t, p, l, content)
		for verb, info := range map[string]providers.Info{"write": written, "read": info} {
			if info.Size != int64(len(content)) || info.Kind != providers.KindFile || info.Locator != l {
				t.Errorf("%s of %s says %q, %v, %d bytes", verb, name, info.Locator, info.Kind, info.Size)
			}
		}
	}
}

func contentReplaced(t T, p providers.Provider) {
	l := loc("a")
	for _, content := range []string{"long content", "short", "", "again"} {
		put(t, p, l, content)
		wantContent(t, p, l, content)
	}
}

func contentSizeUnknown(t T, p providers.Provider) {
	want := pattern(100_000)
	body := providers.Body{Reader: struct{ io.Reader }{strings.NewReader(want)}, Size: providers.SizeUnknown}
	_, err := p.Write(t.Context(), loc("a"), body, unconditional)
	wantOK(t, "write", err)
	wantContent(t, p, loc("a"), want)
}

func contentSizeWrong(t T, p providers.Provider) {
	put(t, p, loc("a"), "before")
	for name, size := range map[string]int64{"more than there is": 10, "less than there is": 3, "nothing": 0} {
		body := providers.Body{Reader: strings.NewReader("after"), Size: size}
		_, err := p.Write(t.Context(), loc("a"), body, unconditional)
		wantErr(t, "write that promises "+name, err, providers.ErrInvalid)
		wantContent(t, p, loc("a"), "before")
	}
	wantNames(t, list(t, p, loc(""), providers.ListOptions{}), "a")
}

// failing returns some bytes, then an error.
type failing struct {
	r   io.Reader
	err error
}

func (f failing) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if err == io.EOF {
		err = f.err
	}
	return n, err
}

func contentBodyFails(t T, p providers.Provider) {
	put(t, p, loc("a"), "before")
	// An error that, taken for the storage's own, would have another kind.
	broken := &fs.PathError{Op: "read", Path: "the sender's", Err: syscall.ENOSPC}
	for _, name := range []string{"a", "new"} {
		for _, size := range []int64{20_000, providers.SizeUnknown} {
			body := providers.Body{Reader: failing{strings.NewReader(pattern(10_000)), broken}, Size: size}
			_, err := p.Write(t.Context(), loc(name), body, unconditional)
			wantErr(t, "write of a body that fails", err, providers.ErrBody)
			if !errors.Is(err, broken) {
				t.Errorf("the reader's own error is lost: %v", err)
			}
		}
	}
	wantContent(t, p, loc("a"), "before")
	wantNames(t, list(t, p, loc(""), providers.ListOptions{}), "a")
}

func contentLarge(t T, p providers.Provider) {
	want := pattern(3<<20 + 17)
	put(t, p, loc("large"), want)
	wantContent(t, p, loc("large"), want)
}

func contentArguments(t T, p providers.Provider) {
	content := []byte("mine")
	metadata := map[string]string{"colour": "red"}
	opts := providers.WriteOptions{If: providers.IfAbsent(), Metadata: metadata}
	_, err := p.Write(t.Context(), loc("a"), providers.Bytes(content), opts)
	wantOK(t, "write", err)
	copy(content, "XXXX")
	metadata["colour"] = "blue"
	info := wantContent(t, p, loc("a"), "mine")
	if got := info.Metadata["colour"]; p.Capabilities().Metadata && got != "red" {
		t.Errorf("metadata changed with the caller's map: %q", got)
	}
}
