package assert

import "reflect"

// Gave is what a call gave: a value, or an error.
type Gave[V any] struct {
	value V
	err   error
}

// Of takes what a call gave, for a test to say in the same line what it wants of it.
func Of[V any](value V, err error) Gave[V] { return Gave[V]{value, err} }

// OK is the value, without which the test cannot go on.
func (g Gave[V]) OK(t T, what ...any) V {
	if g.err != nil {
		t.Helper()
		OK(t, g.err, what...)
	}
	return g.value
}

// Equal wants no error and this value: of a list or a map the same elements.
func (g Gave[V]) Equal(t T, want V, what ...any) {
	if g.err != nil || !same(reflect.ValueOf(&g.value).Elem(), reflect.ValueOf(&want).Elem()) {
		t.Helper()
		t.Errorf("%sgot %s, %v, want %s", label(what), showBytes(g.value), g.err, showBytes(want))
	}
}

// same takes a list or map that is nil for one that is empty.
func same(a, b reflect.Value) bool {
	if k := a.Kind(); (k == reflect.Slice || k == reflect.Map) && a.Len() == 0 {
		return b.Len() == 0
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// showBytes is show, to which bytes are text.
func showBytes(v any) string {
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	return show(v)
}
