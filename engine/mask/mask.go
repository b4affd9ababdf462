// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package mask

import (
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// Text stands for a value that is not shown. It says nothing of the value, not
// even whether two are the same.
const Text = "(masked)"

// LastApplied is the annotation in which kubectl stores all that was applied.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// hidden says how much of a value is hidden.
type hidden int

const (
	// shown is a value of which only what is below may be hidden.
	shown hidden = iota
	// credential is the value of a field that is named like one. True and false
	// are shown: they say how something is done, as automountServiceAccountToken.
	credential
	// everything is what a Secret holds.
	everything
)

// Value returns what may be shown of a value that is at a path of an object. The
// objects are those that the path is of, such as the old and the new version:
// what any of them hides is hidden. Without any nothing can be known, and all of
// it is. The value is not modified; nil stays nil.
func Value(path fieldpath.Path, v any, objects ...map[string]any) any {
	how := shown
	if len(objects) == 0 {
		how = everything
	}

	for _, object := range objects {
		how = max(how, along(path, object))
	}

	return value(v, how)
}

// Hides reports whether anything in a value at a path of the objects is hidden.
func Hides(path fieldpath.Path, v any, objects ...map[string]any) bool {
	how := shown
	for _, object := range objects {
		how = max(how, along(path, object))
	}

	return hides(v, how)
}

// along walks down a path and says what the fields on it hide.
func along(path fieldpath.Path, object map[string]any) hidden {
	how, at := shown, any(object)

	for _, s := range path {
		if list, ok := at.([]any); ok {
			at = nil

			if s.Type == fieldpath.SegmentIndex && s.Index < uint(len(list)) {
				at = list[s.Index]
			}

			continue
		}

		field := s.Key() // Of digits it may be that of a list that this version does not have.
		in, _ := at.(map[string]any)
		how = below(how, in, field)
		at = in[field]
	}

	return how
}

// below is what is hidden of a field, where something is hidden of what it is
// in.
func below(how hidden, in map[string]any, field string) hidden {
	switch {
	case how == everything:
		return everything
	case field == LastApplied, isSecret(in) && (field == "data" || field == "stringData"):
		return everything
	case field == "imagePullSecrets" || field == "serviceAccountToken": // Of pods: names, and how to make one.
		return shown
	case how == credential && field == "secretName":
		return shown
	case named(field), field == "value" && namedPair(in):
		return credential
	default:
		return how
	}
}

// isSecret reports whether a map is a Secret, be it one inside another object.
func isSecret(m map[string]any) bool { return m["kind"] == "Secret" }

// namedPair reports whether a map is a pair of a name and a value, as an
// environment variable is, and the name is that of a credential.
func namedPair(m map[string]any) bool {
	for _, key := range [...]string{"name", "key"} {
		if name, ok := m[key].(string); ok && named(name) {
			return true
		}
	}

	return false
}

// value returns what is shown of a value.
func value(v any, how hidden) any {
	switch t := v.(type) {
	case nil:
		return nil
	case map[string]any:
		out := make(map[string]any, len(t))
		for key, e := range t {
			out[key] = value(e, below(how, t, key))
		}

		return out
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = value(e, how)
		}

		return out
	default:
		if hidesPlain(v, how) {
			return Text
		}

		return v
	}
}

// hides reports whether anything in a value is hidden.
func hides(v any, how hidden) bool {
	switch t := v.(type) {
	case nil:
		return false
	case map[string]any:
		for key, e := range t {
			if hides(e, below(how, t, key)) {
				return true
			}
		}

		return false
	case []any:
		for _, e := range t {
			if hides(e, how) {
				return true
			}
		}

		return false
	default:
		return hidesPlain(v, how)
	}
}

// hidesPlain reports whether a value without parts is hidden.
func hidesPlain(v any, how hidden) bool {
	if how == everything {
		return true
	}

	switch t := v.(type) {
	case bool:
		return false
	case string:
		return how == credential || reveals(t)
	default:
		return how == credential
	}
}
