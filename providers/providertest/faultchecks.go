package providertest

import (
	"context"
	"errors"
	"io"

	"github.com/wsmount/wsmount/providers"
)

// faultChecks wrap the provider themselves.
var faultChecks = []Check{
	{Name: "fault/before", Run: faultBefore},
	{Name: "fault/lost-answer", Run: faultLostAnswer},
	{Name: "fault/lost-answer-with-operation-id", Needs: providers.Capabilities{OperationIDs: true}, Run: faultOperationID},
	{Name: "fault/half-download", Run: faultHalfDownload},
	{Name: "fault/half-upload", Run: faultHalfUpload},
	{Name: "fault/stall", Run: faultStall},
}

// errFault is the error of the injector: an outage.
var errFault = &providers.Error{Op: "fault", Kind: providers.ErrUnavailable, Code: "injected"}

// faultBefore: a call that never arrived changed nothing, and the provider works again
// afterwards.
func faultBefore(t T, inner providers.Provider) {
	faults := NewFaults(t)
	p := faults.Wrap(inner)
	setUp(t, p)
	for name, verb := range verbs(p) {
		faults.Queue(name, Fault{Before: errFault})
		wantErr(t, string(name)+" in an outage", verb(t.Context()), providers.ErrUnavailable)
	}
	untouched(t, p)
	for name, verb := range verbs(p) {
		wantOK(t, string(name)+" after the outage", verb(t.Context()))
	}
}

// faultLostAnswer: the caller gets the error and no result, and the change is made.
func faultLostAnswer(t T, inner providers.Provider) {
	faults := NewFaults(t)
	p := faults.Wrap(inner)
	setUp(t, p)
	for name, verb := range verbs(p) {
		faults.Queue(name, Fault{After: errFault})
		wantErr(t, string(name)+" whose answer got lost", verb(t.Context()), providers.ErrUnavailable)
	}
	wantContent(t, p, loc("new"), "new")
	wantGone(t, p, loc("gone"))
	faults.Queue(providers.MethodStat, Fault{After: errFault})
	if info, _ := p.Stat(t.Context(), loc("a")); info.Locator != loc("") || info.Kind != providers.KindUnknown {
		t.Errorf("a lost answer arrived after all: %+v", info)
	}
	// A deletion that is repeated finds its work done.
	faults.Queue(providers.MethodDelete, Fault{After: errFault})
	a, err := p.Stat(t.Context(), loc("a"))
	wantOK(t, "stat", err)
	opts := providers.DeleteOptions{If: providers.IfVersion(a.Version)}
	wantErr(t, "delete", p.Delete(t.Context(), loc("a"), opts), providers.ErrUnavailable)
	wantErr(t, "repeated delete", p.Delete(t.Context(), loc("a"), opts), providers.ErrNotExist)
}

// faultOperationID: a write whose answer got lost succeeds when repeated, and with another id
// it is a conflict.
func faultOperationID(t T, inner providers.Provider) {
	faults := NewFaults(t)
	p := faults.Wrap(inner)
	opts := providers.WriteOptions{If: providers.IfAbsent(), Op: "op-1"}
	write := func() (providers.Info, error) { return p.Write(t.Context(), loc("a"), providers.String("x"), opts) }
	faults.Queue(providers.MethodWrite, Fault{After: errFault})
	_, err := write()
	wantErr(t, "write whose answer got lost", err, providers.ErrUnavailable)
	info, err := write()
	wantOK(t, "repeated write", err)
	if now := wantContent(t, p, loc("a"), "x"); !now.Version.Matches(info.Version) {
		t.Errorf("repeated write says %+v, read %+v", info.Version, now.Version)
	}
	opts.Op = "op-2"
	_, err = write()
	wantErr(t, "write by another", err, providers.ErrExist)
}

// faultHalfDownload: half of the content is never taken for the whole, not even when the
// connection ends cleanly.
func faultHalfDownload(t T, inner providers.Provider) {
	faults := NewFaults(t)
	p := faults.Wrap(inner)
	want := pattern(50_000)
	put(t, p, loc("a"), want)
	for cut, kind := range map[error]error{
		errFault: providers.ErrUnavailable, io.ErrUnexpectedEOF: providers.ErrUnavailable, io.EOF: providers.ErrCorrupt,
	} {
		faults.Queue(providers.MethodRead, Fault{Cut: cut, CutAfter: 20_000})
		_, _, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{})
		wantErr(t, "download that breaks off", err, kind)
	}
	wantContent(t, p, loc("a"), want)
}

func faultHalfUpload(t T, inner providers.Provider) {
	faults := NewFaults(t)
	p := faults.Wrap(inner)
	setUp(t, p)
	for cut, kind := range map[error]error{errFault: providers.ErrBody, io.EOF: providers.ErrInvalid} {
		faults.Queue(providers.MethodWrite, Fault{Cut: cut, CutAfter: 20_000})
		_, err := p.Write(t.Context(), loc("a"), providers.String(pattern(50_000)), unconditional)
		wantErr(t, "upload that breaks off", err, kind)
	}
	untouched(t, p)
}

// faultStall: a call that hangs ends with its context, and others go on.
func faultStall(t T, inner providers.Provider) {
	faults := NewFaults(t)
	p := faults.Wrap(inner)
	setUp(t, p)
	reached, gate := make(chan struct{}), make(chan struct{})
	faults.Queue(providers.MethodStat, Fault{Gate: gate, Reached: reached})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := p.Stat(ctx, loc("a"))
		result <- err
	}()
	<-reached
	wantContent(t, p, loc("a"), "content")
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("stalled call whose context ended: %v", err)
	}
	close(gate)
	faults.Queue(providers.MethodStat, Fault{Gate: gate})
	_, err := p.Stat(t.Context(), loc("a"))
	wantOK(t, "stat through an open gate", err)
}
