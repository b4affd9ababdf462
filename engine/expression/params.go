// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// VarParams is the parameter that the expressions of a policy are evaluated with.
const VarParams = "params"

// ParamQuery asks for the objects that hold parameters.
type ParamQuery struct {
	// Kind of them.
	Kind schema.GroupVersionKind
	// Namespace they are in; it means nothing where their kind is cluster-scoped. Empty
	// where neither the policy names one nor the object belongs to one.
	Namespace string
	// Name of the one; empty where Selector selects them.
	Name string
	// Selector of several; nil with a name.
	Selector labels.Selector
}

// String says what is asked for, for a person.
func (q ParamQuery) String() string {
	if q.Selector != nil {
		out := fmt.Sprintf("%s of labels %q", q.Kind.Kind, q.Selector)
		if q.Namespace != "" {
			out += " in namespace " + q.Namespace
		}

		return out
	}

	return ParamName(q.Kind.Kind, q.Namespace, q.Name)
}

// Within is the query as it was meant: a namespace means nothing where what was found tells
// that the kind has none.
func (q ParamQuery) Within(list ParamList) ParamQuery {
	if list.ClusterScoped {
		q.Namespace = ""
	}

	return q
}

// ParamName names a parameter for a person.
func ParamName(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}

	return fmt.Sprintf("%s %q", kind, name)
}

// MaxParams is in how many objects a policy may have its parameters at once.
const MaxParams = 100

// ParamList is what was found of a [ParamQuery].
type ParamList struct {
	// Objects that are there, ordered by namespace and name; of more than [MaxParams] not all
	// of them. They are not to be modified.
	Objects []map[string]any
	// ClusterScoped is true where their kind is known to be so, be there any objects or not,
	// and whether or not they could be read: the query's namespace meant nothing.
	ClusterScoped bool
}

// Params finds objects that hold parameters. The error is of what cannot be read, or of
// [policy.ErrParamsAwaited].
type Params func(ParamQuery) (ParamList, error)

// Once finds what was found first of each query, so that all that one decision finds is of one moment. It is not safe
// for concurrent use. It is nil where nobody finds any.
func (p Params) Once() Params {
	if p == nil {
		return nil
	}

	type answer struct {
		list ParamList
		err  error
	}

	var found map[ParamQuery]answer // Most decisions read none.

	return func(q ParamQuery) (ParamList, error) {
		key := q
		if q.Selector != nil { // Two that select the same need not be equal.
			key.Name, key.Selector = q.Selector.String(), labels.Nothing()
		}

		a, ok := found[key]
		if !ok {
			if found == nil {
				found = map[ParamQuery]answer{}
			}

			a.list, a.err = p(q)
			found[key] = a
		}

		return a.list, a.err
	}
}
