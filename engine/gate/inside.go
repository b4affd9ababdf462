// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// Inside is a field of a managed resource that is stored otherwise than it was asked
// for: the gate did not let it out, and the external object is as it was.
type Inside struct {
	// Change from what was asked for to what is stored.
	Change change.Change
	// User who stored it.
	User string
	// Since is when what is stored was first something else than what was asked for;
	// zero where the record does not say.
	Since time.Time
}

// InsideOf are those fields of a managed resource, in order; none where there is no
// gate. The error is of a record that cannot be read.
func InsideOf(u *unstructured.Unstructured) ([]Inside, error) {
	if !Governed(u) || Ungated(u) {
		return nil, nil
	}

	rec, err := ParseAsked(u)
	if err != nil || rec == nil {
		return nil, err
	}

	asked, err := AskedFor(u, rec)
	if err != nil {
		return nil, err
	}

	var since time.Time
	if rec.Since != nil {
		since = rec.Since.Time
	}

	away := Away(rec)

	var out []Inside

	for _, c := range change.Between(asked.Object, u.Object) {
		i := slices.IndexFunc(away, func(path change.Path) bool { return leads(path, c.Path) })
		if i < 0 {
			continue
		}

		in := Inside{Change: c, User: rec.User, Since: since}
		if user := rec.Users[away[i].String()]; user != "" {
			in.User = user
		}

		out = append(out, in)
	}

	return out, nil
}

// leads reports whether one of two paths leads to the other.
func leads(a, b change.Path) bool {
	n := min(len(a), len(b))

	return slices.Equal(a[:n], b[:n])
}

// SameAsked reports whether two values of kausality.io/asked say the same: when that was
// found out is no part of it.
func SameAsked(a, b string) bool {
	one, first := withoutTime(a)
	other, second := withoutTime(b)

	return first == nil && second == nil && one == other
}

func withoutTime(text string) (string, error) {
	if text == "" {
		return "", nil
	}

	rec := v1alpha1.AskedRecord{}
	if err := yaml.Unmarshal([]byte(text), &rec); err != nil {
		return "", err
	}

	rec.Since = nil
	raw, err := yaml.Marshal(rec)

	return string(raw), err
}
