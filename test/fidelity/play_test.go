// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fidelity_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

const (
	// tries is how many random objects or edits may be refused by the API server
	// before none is played.
	tries = 20
	// changes is how many changes of the wish, and edits by hand, of one object.
	changes = 2
	// passes is in how many runs an XR settles at most.
	passes = 6
	// shown is how many characters of a difference are shown.
	shown = 2500
)

// Annotations of ours that the tests write.
const (
	annotationInitialized = "kausality.io/initialized"
	annotationAllowances  = "kausality.io/allowances"
)

var (
	errInvalid = errors.New("the API server takes none of the random objects")
	// errFault ends a play in which something is not as it should be: what
	// follows from it says nothing new.
	errFault = errors.New("a fault")
	// errEnd ends a play that cannot go on.
	errEnd = errors.New("the end")
)

// settled is how the function's message starts once nothing is under way.
var settled = regexp.MustCompile(`^generation \d+: settled`)

// A play is the life of one object.
type play struct {
	*cluster

	seed     uint64
	template string
	rng      *rand.Rand

	c    *composite
	wish map[string]any
	sch  node
	// asked is true while a change of the wish is allowed as a whole.
	asked bool

	counts map[string]int
	faults []fault
}

// A fault is something that is not as it should be.
type fault struct {
	seed                 uint64
	object, what, detail string
}

func (f fault) String() string {
	return fmt.Sprintf("%s=%d %s=1 %s: %s\n%s", world.EnvSeed, f.seed, envObjects, f.object, f.what, f.detail)
}

func (p *play) fault(what, format string, args ...any) error {
	detail := fmt.Sprintf(format, args...)
	p.faults = append(p.faults, fault{p.seed, p.template, what, detail[:min(len(detail), shown)]})

	return errFault
}

// play plays all of it.
func (p *play) play(ctx context.Context) {
	p.counts = map[string]int{}

	err := p.begin(ctx)
	if err == nil {
		p.counts["objects"]++
		err = p.live(ctx)
		err = errors.Join(err, p.end(ctx))
	}

	if err != nil && !errors.Is(err, errFault) && !errors.Is(err, errEnd) {
		_ = p.fault("cannot be played", "%v", err)
	}
}

// live is what happens to the object.
func (p *play) live(ctx context.Context) error {
	// 1. It is composed, and settles.
	if err := p.compose(ctx); err != nil {
		return err
	}

	// 2. What is wished again is no change.
	if err := p.rest(ctx, "after it was composed"); err != nil {
		return err
	}

	// 3. A changed wish is held, and taken back is no change.
	if err := p.some(changes, edits(p.rng, p.wish), func(e edit) (bool, error) { return p.held(ctx, e) }); err != nil {
		return err
	}

	// 4. One that is asked for arrives, once.
	if err := p.some(1, edits(p.rng, p.wish), func(e edit) (bool, error) { return p.allowed(ctx, e) }); err != nil {
		return err
	}

	// 5. What somebody else did to it is seen.
	stored, err := p.c.observe(ctx)
	if err != nil {
		return err
	}

	if err := p.some(changes, byHand(p.rng, p.sch, encoded(p.wish), stored.Object, true), func(e edit) (bool, error) { return p.drift(ctx, e) }); err != nil {
		return err
	}

	// 6. What somebody else did beside it is let be.
	if stored, err = p.c.observe(ctx); err != nil {
		return err
	}

	return p.some(1, byHand(p.rng, p.sch, encoded(p.wish), stored.Object, false), func(e edit) (bool, error) { return p.beside(ctx, e) })
}

// some plays a number of edits, of those that can be played.
func (p *play) some(n int, list []edit, f func(edit) (bool, error)) error {
	for _, e := range list[:min(len(list), tries)] {
		if n == 0 {
			return nil
		}

		played, err := f(e)
		if err != nil {
			return err
		}

		if played {
			n--
		}
	}

	return nil
}

// begin finds a valid object.
func (p *play) begin(ctx context.Context) error {
	var last error

	for range tries {
		wish := asMap(generate(p.rng, p.templates[p.template]))
		u := &unstructured.Unstructured{Object: wish}
		u.SetName(fmt.Sprintf("f-%d", p.seed))

		namespaced, err := p.client.IsObjectNamespaced(u)
		if err != nil {
			return err
		}

		if namespaced {
			u.SetNamespace(p.namespace(u.GetKind()))
		}

		p.wish = u.Object
		p.c = p.cluster.compose(fmt.Sprintf("x-%d", p.seed), p.wish, p.rng.IntN(4) == 0)

		if _, last = p.c.patch(ctx, p.wish, nil, client.DryRunAll); last == nil {
			sch, err := p.schemas.sent(p.c.kind)
			p.sch = sch.GetOpenapiV3().AsMap()

			return err
		}
	}

	return fmt.Errorf("%w: %w", errInvalid, last)
}

func (p *play) namespace(kind string) string {
	switch {
	case kind == "LimitRange" || kind == "ResourceQuota":
		return limited
	case p.rng.IntN(3) == 0:
		return meshed
	default:
		return plain
	}
}

// end removes the object.
func (p *play) end(ctx context.Context) error {
	u, err := p.c.observe(ctx)
	if err != nil || u == nil {
		return err
	}

	return client.IgnoreNotFound(p.client.Delete(ctx, u, client.GracePeriodSeconds(0), client.PropagationPolicy("Background")))
}

// compose creates the object: as a rule while the XR is built up, now and then
// by an XR that was for long, and then with a wish that changes at once.
func (p *play) compose(ctx context.Context) error {
	if p.rng.IntN(4) == 0 {
		p.c.xr.SetAnnotations(map[string]string{annotationInitialized: `{"v":1}`})
		p.c.required = []*unstructured.Unstructured{window(p.c.kind.Kind, "create")}

		if _, err := p.pass(ctx, p.wish); err != nil {
			return err
		}

		p.c.required = nil
		p.counts["changed right after the creation"]++

		return p.some(1, edits(p.rng, p.wish), func(e edit) (bool, error) { return p.held(ctx, e) })
	}

	message, err := p.settle(ctx, p.wish)
	if err != nil {
		return err
	}

	if !settled.MatchString(message) {
		_ = p.fault("an XR does not settle after its creation", "it says: %s\nwished:\n%s", message, text(p.wish))
		p.c.xr.SetAnnotations(map[string]string{annotationInitialized: `{"v":1}`})
	}

	return nil
}

// pass is one reconciliation by Crossplane.
func (p *play) pass(ctx context.Context, wish map[string]any) (*fnv1.RunFunctionResponse, error) {
	rsp, err := p.c.run(ctx, wish)
	if err != nil {
		return nil, err
	}

	if err := p.c.apply(ctx, rsp); err != nil {
		if what := p.refused(ctx, wish, rsp, err); what != "" {
			p.counts[what]++

			return rsp, errEnd
		}

		return rsp, p.fault("what the function wants cannot be applied", "%v\nit says: %s\nit wants:\n%s", err, said(rsp),
			text(rsp.GetDesired().GetResources()[resourceName].GetResource().AsMap()))
	}

	return rsp, nil
}

// passed is one, and what is stored after it.
func (p *play) passed(ctx context.Context, wish map[string]any) (*fnv1.RunFunctionResponse, *unstructured.Unstructured, error) {
	rsp, err := p.pass(ctx, wish)
	if err != nil {
		return rsp, nil, err
	}

	after, err := p.c.observe(ctx)

	return rsp, after, err
}

// settle is as many of them as it takes.
func (p *play) settle(ctx context.Context, wish map[string]any) (string, error) {
	message := ""

	for range passes {
		rsp, err := p.pass(ctx, wish)
		if err != nil {
			return "", err
		}

		if message = said(rsp); settled.MatchString(message) {
			return message, nil
		}
	}

	return message, nil
}

// rest checks that nothing happens where nothing is new.
func (p *play) rest(ctx context.Context, when string) error {
	p.counts["unchanged wishes"]++

	first, err := p.pass(ctx, p.wish)
	if err != nil {
		return err
	}

	if m := said(first); fixture.Holds(m) || !settled.MatchString(m) {
		stored, _ := p.c.observe(ctx)

		return p.fault("an unchanged wish is a change "+when, "it says: %s\nwished:\n%s\nstored:\n%s", m, text(gated(p.wish)), text(gated(stored.Object)))
	}

	before, err := p.c.observe(ctx)
	if err != nil {
		return err
	}

	second, err := p.pass(ctx, p.wish)
	if err != nil {
		return err
	}

	after, err := p.c.observe(ctx)
	if err != nil {
		return err
	}

	if diff := written(before, after); diff != "" {
		return p.fault("an unchanged wish is written "+when, "-before, +after:\n%s", diff)
	}

	if a, b := first.GetDesired().GetResources()[resourceName], second.GetDesired().GetResources()[resourceName]; !proto.Equal(a, b) {
		return p.fault("the same request is answered in two ways "+when, "-first, +second:\n%s", cmp.Diff(a.GetResource().AsMap(), b.GetResource().AsMap()))
	}

	return nil
}

// predict is what the API server would make of a wish, without the function.
func (p *play) predict(ctx context.Context, wish map[string]any, stored *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return p.c.patch(ctx, wish, stored, client.DryRunAll)
}

// held plays a changed wish that is not allowed.
func (p *play) held(ctx context.Context, e edit) (bool, error) {
	before, err := p.c.observe(ctx)
	if err != nil {
		return false, err
	}

	wish := e.on(p.wish)

	predicted, refused := p.predict(ctx, wish, before)
	if refused != nil && !apierrors.IsInvalid(refused) {
		return false, nil
	}

	rsp, after, err := p.passed(ctx, wish)
	if err != nil {
		return false, err
	}

	told := fixture.Holds(said(rsp))

	switch {
	case different(before, after):
		return false, p.fault("an unasked change is stored", "%s\nit says: %s\n-before, +after:\n%s", e, said(rsp), difference(before, after))
	case (refused != nil || different(before, predicted)) && !told:
		return false, p.fault("a changed wish is not seen", "%s\nit says: %s\nit would be, -stored, +wanted:\n%s", e, said(rsp), difference(before, predicted))
	case !told:
		p.counts["changed wishes without effect"]++
	default:
		p.counts["changed wishes that are held"]++
	}

	_, again, err := p.passed(ctx, wish)
	if err != nil {
		return false, err
	}

	if diff := written(after, again); diff != "" {
		return false, p.fault("what is held is written again", "%s\n-before, +after:\n%s", e, diff)
	}

	return told, p.rest(ctx, "after a wish was taken back: "+e.what)
}

// allowed plays a changed wish that somebody asked for, by a window or by a
// policy.
func (p *play) allowed(ctx context.Context, e edit) (bool, error) {
	before, err := p.c.observe(ctx)
	if err != nil {
		return false, err
	}

	wish := e.on(p.wish)

	predicted, refused := p.predict(ctx, wish, before)
	if refused != nil || !different(before, predicted) {
		return false, nil //nolint:nilerr // Another edit is played.
	}

	if p.rng.IntN(2) == 0 {
		p.c.required = []*unstructured.Unstructured{window(p.c.kind.Kind, fields(wish, before.Object, predicted.Object)...)}
	} else {
		p.ask(fields(wish, before.Object, predicted.Object))
	}

	p.asked = true

	message, err := p.settle(ctx, wish)
	if err != nil {
		return false, err
	}

	p.asked, p.c.required, p.wish = false, nil, wish
	p.counts["changed wishes that are allowed"]++

	after, err := p.c.observe(ctx)
	if err != nil {
		return false, err
	}

	if different(applied(predicted), applied(after)) {
		return false, p.fault("an allowed change does not arrive", "%s\nit says: %s\n-wanted, +stored:\n%s", e, message, difference(predicted, after))
	}

	if !settled.MatchString(message) {
		return false, p.fault("an allowed change does not settle", "%s\nit says: %s", e, message)
	}

	return true, p.rest(ctx, "after an allowed change: "+e.what)
}

// ask is a change of the XR that a policy grants: its allowances are stamped.
func (p *play) ask(fields []string) {
	p.c.xr.SetGeneration(p.c.xr.GetGeneration() + 1)

	list := make([]map[string]any, 0, len(fields))
	for _, f := range fields {
		list = append(list, map[string]any{
			"kind": p.c.kind.Kind, "mutation": f, "generation": p.c.xr.GetGeneration(), "initiator": "hans",
			"id": allowance.ID(p.c.xr.GetGeneration(), 0), "source": map[string]any{"type": "Policy", "field": "spec.size"},
			"trace": []any{map[string]any{
				"kind": "XApp", "name": p.c.xr.GetName(), "generation": p.c.xr.GetGeneration(), "field": "spec.size",
			}},
		})
	}

	raw, err := yaml.Marshal(list)
	if err != nil {
		panic(err)
	}

	annotations := maps.Clone(p.c.xr.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}

	annotations[annotationAllowances] = string(raw)
	p.c.xr.SetAnnotations(annotations)
}

// fields are the names of what is gated of objects, less what is never stored.
func fields(objects ...map[string]any) []string {
	all := map[string]bool{}

	for _, o := range objects {
		for key := range gated(o) {
			all[key] = true
		}
	}

	return slices.Sorted(maps.Keys(all))
}

func text(v any) string {
	raw, err := yaml.Marshal(v)
	if err != nil {
		return err.Error()
	}

	return string(raw)
}
