// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// Decided by other policies, a change gives other allowances, which the log does not have on the
// object when what follows from it is decided. So the logs are read several times: each time
// parents carry what was given the time before, until that is the same. One time more is read
// than a chain has hops.

const (
	// maxHops is how often logs are read at most.
	maxHops = 10
	// maxGivers is of how many objects it is remembered what they give.
	maxGivers = 100_000
)

// object is one of a log.
type object struct {
	schema.GroupKind

	namespace, name, uid string
}

func objectKey(u *unstructured.Unstructured) object {
	return object{u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName(), string(u.GetUID())}
}

// chain is what objects give, as decisions about them say.
type chain struct {
	// before is what they gave the time before; not modified.
	before map[object][]v1alpha1.Allowance

	mu   sync.Mutex
	now  map[object][]v1alpha1.Allowance
	more bool
}

func newChain(before map[object][]v1alpha1.Allowance) *chain {
	return &chain{before: before, now: map[object][]v1alpha1.Allowance{}}
}

// done reports whether the same was given the time before.
func (c *chain) done() bool { return reflect.DeepEqual(c.before, c.now) }

// give has the parent of a request carry what was given to the generation that it has, or to
// one before.
func (c *chain) give(req *request.Request) {
	if c == nil || req.Parent == nil {
		return
	}

	var given []v1alpha1.Allowance

	for _, a := range c.before[objectKey(req.Parent)] {
		if a.Generation <= resource.Generation(req.Parent) {
			given = append(given, a)
		}
	}

	have, err := allowance.Parse(req.Parent)
	if err != nil || len(given) == 0 {
		return
	}

	parent := &unstructured.Unstructured{Object: maps.Clone(req.Parent.Object)}
	parent.Object["metadata"] = maps.Clone(resource.Map(parent.Object, "metadata"))

	annotations := parent.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}

	annotations[v1alpha1.AnnotationAllowances] = allowance.FormatList(allowance.Merge(have, given))
	parent.SetAnnotations(annotations)

	req.Parent, req.Old = parent, released(req.Old)
}

// released is an object without the places at which what followed from a change was held: it would have been let through.
func released(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}

	rec, first := allowance.ParseRecord(u)
	own, second := allowance.ReadWithheld(rec.Withheld)
	wished, third := wish.Withheld(u)

	if errors.Join(first, second, third) != nil || len(own)+len(wished) == 0 {
		return u
	}

	text, err := wish.WithWithheld(resource.Annotation(u, v1alpha1.AnnotationWish), u, wished.OfNoField())
	if err != nil {
		return u
	}

	rec.Withheld = own.OfNoField().Record()
	annotations := u.GetAnnotations()
	annotations[v1alpha1.AnnotationRecord], annotations[v1alpha1.AnnotationWish] = allowance.FormatRecord(rec), text
	maps.DeleteFunc(annotations, func(_, text string) bool { return text == "" })

	out := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	out.Object["metadata"] = maps.Clone(resource.Map(u.Object, "metadata"))
	out.SetAnnotations(annotations)

	return out
}

// note notes what an object gives by a decision about it.
func (c *chain) note(d *decisionlog.Decision, out *decision.Decision) {
	if c == nil || d.DryRun || d.By.Part != decisionlog.PartMutate || d.Operation != request.OperationUpdate || out.Object == nil {
		return
	}

	list, err := allowance.Parse(out.Object)
	if err != nil || len(list) == 0 {
		return
	}

	key := objectKey(out.Object)

	c.mu.Lock()
	defer c.mu.Unlock()

	if _, ok := c.now[key]; !ok && len(c.now) >= maxGivers {
		c.more = true

		return
	}

	c.now[key] = merged(c.now[key], list)
}

// merged are allowances with others, each once, in an order that does not depend on which
// decision is made first.
func merged(have, add []v1alpha1.Allowance) []v1alpha1.Allowance {
	for _, a := range add {
		i, found := slices.BinarySearchFunc(have, a, compareAllowances)
		if !found {
			have = slices.Insert(have, i, a)
		}
	}

	return have
}

func compareAllowances(a, b v1alpha1.Allowance) int {
	text := func(a v1alpha1.Allowance) string { return allowance.FormatList([]v1alpha1.Allowance{a}) }

	return cmp.Or(allowance.CompareAge(a, b), strings.Compare(text(a), text(b)))
}
