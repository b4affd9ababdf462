// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// world is one managed resource, its external resource, and a provider.
type world struct {
	u    *unstructured.Unstructured
	opts gate.Options
	now  time.Time
	// How the provider is made: in the background, with observedGeneration,
	// showing the field, and how far its clock is ahead.
	async, numbered, shows bool
	// silent is true of one that does not say that a background operation runs;
	// none takes longer than it takes to settle.
	silent bool
	skew   time.Duration
	// size is the external resource's, 0 while there is none; running is what
	// a background operation will make it, 0 while there is none.
	size, running int64
	failing       bool
	// requeued is whether an operation has ended that the provider has not
	// observed since. upjet's callback makes it observe once.
	requeued bool
	// edited is whether a person changed the policies since the last plan.
	edited bool
	issued []v1alpha1.Allowance
	served []v1alpha1.Allowance
}

func newWorld(t *rapid.T) *world {
	w := &world{
		u: &unstructured.Unstructured{Object: map[string]any{
			"kind": "Database", "metadata": map[string]any{"name": "db", "generation": int64(1)},
			"spec": map[string]any{"forProvider": map[string]any{"size": int64(1)}},
		}},
		opts: someOptions(t), now: opening,
		async: rapid.Bool().Draw(t, "async"), numbered: rapid.Bool().Draw(t, "numbered"), shows: rapid.Bool().Draw(t, "shows"),
		silent: rapid.Bool().Draw(t, "silent"),
		skew:   time.Duration(rapid.SampledFrom([]int{0, -30, 30, 600}).Draw(t, "skew")) * time.Second,
	}

	asked := rapid.SampledFrom([][]string{
		{management.ActionAll},
		{management.ActionObserve, management.ActionCreate, management.ActionUpdate},
		{management.ActionObserve, management.ActionCreate, management.ActionUpdate, management.ActionDelete},
		{management.ActionObserve, management.ActionLateInitialize, management.ActionCreate, management.ActionUpdate},
	}).Draw(t, "asked")
	w.u.SetAnnotations(map[string]string{v1alpha1.AnnotationDesiredPolicies: management.FormatPolicies(asked)})
	setPolicies(w.u, management.Initial(asked, w.opts.LateInitialize)...)

	return w
}

func (w *world) set() []string { return resource.Strings(w.u.Object, "spec", "managementPolicies") }

func (w *world) spec() int64 { return resource.Int(w.u.Object, "spec", "forProvider", "size") }

func (w *world) annotate(key, value string) {
	annotations := w.u.GetAnnotations()
	annotations[key] = value
	w.u.SetAnnotations(annotations)
}

// say sets a condition as crossplane-runtime does: its time is when anything of
// it changed, and one without a generation is not told from one with it
// (crossplane/apis core/v2, Condition.Equal).
func (w *world) say(typ, status, reason string, numbered bool) {
	c := map[string]any{"type": typ, "status": status, "reason": reason}
	if numbered {
		c["observedGeneration"] = w.u.GetGeneration()
	}

	c["lastTransitionTime"] = w.now.Add(w.skew).UTC().Format(time.RFC3339)
	list := resource.List(w.u.Object, "status", "conditions")

	at := slices.IndexFunc(list, func(e any) bool {
		m, _ := e.(map[string]any)

		return m["type"] == typ
	})
	if at < 0 {
		list = append(list, c)
	} else if old, _ := list[at].(map[string]any); old["status"] != status || old["reason"] != reason || otherGeneration(old, c) {
		list[at] = c
	}

	_ = unstructured.SetNestedSlice(w.u.Object, list, "status", "conditions")
}

func otherGeneration(a, b map[string]any) bool {
	x, y := resource.Int(a, "observedGeneration"), resource.Int(b, "observedGeneration")

	return x != 0 && y != 0 && x != y
}

// provide is one reconcile of the provider.
func (w *world) provide() {
	w.requeued = false
	set := w.set()
	full := slices.Contains(set, management.ActionAll)
	may := func(a string) bool { return full || slices.Contains(set, a) }

	switch {
	case !full && !management.Supported(set), w.failing, w.size == 0 && !may(management.ActionCreate):
		w.say("Synced", "False", "ReconcileError", w.numbered)

		return
	case w.running != 0:
	case w.size == w.spec():
		// upjet forgets an operation's error once the resource is up to date
		// (pkg/controller, the asynchronous clients' Observe).
		if _, ok := resource.ConditionOf(w.u, "LastAsyncOperation"); ok {
			w.say("LastAsyncOperation", "True", "Success", false)
		}
	case w.size != 0 && !may(management.ActionUpdate):
	case w.async:
		w.create()
		w.running = w.spec()

		if !w.silent {
			w.say("AsyncOperation", "False", "Ongoing", w.numbered)
		}
	default:
		w.create()
		w.size = w.spec()
	}

	w.say("Synced", "True", "ReconcileSuccess", w.numbered)
	w.show()
}

// create notes that the external object is made, as crossplane-runtime does before
// it says anything else.
func (w *world) create() {
	if w.size == 0 {
		w.annotate("crossplane.io/external-create-succeeded", w.now.UTC().Format(time.RFC3339))
	}
}

func (w *world) show() {
	if w.size != 0 {
		w.say("Ready", "True", "Available", w.numbered)
	}

	if w.shows && w.size != 0 {
		_ = unstructured.SetNestedField(w.u.Object, w.size, "status", "atProvider", "size")
	}
}

// finish ends a background operation. Like upjet's callback it speaks without a
// generation.
func (w *world) finish(ok bool) {
	if w.running == 0 {
		return
	}

	if ok {
		w.size = w.running
		w.say("LastAsyncOperation", "True", "Success", false)
		w.say("Synced", "True", "ReconcileSuccess", false)
	} else {
		w.say("LastAsyncOperation", "False", "AsyncUpdateFailure", false)
		w.say("Synced", "False", "ReconcileError", false)
	}

	w.running, w.requeued = 0, true
	w.say("AsyncOperation", "True", "Finished", w.numbered)
}

// change is a change of the spec that was allowed.
func (w *world) change(t *rapid.T, mutations []string) {
	_ = unstructured.SetNestedField(w.u.Object, rapid.Int64Range(1, 3).Draw(t, "size"), "spec", "forProvider", "size")
	w.u.SetGeneration(w.u.GetGeneration() + 1)
	w.stamp(v1alpha1.Allowance{
		Relation: v1alpha1.RelationExternal, Mutations: mutations, Generation: w.u.GetGeneration(), Initiator: "hans",
		Policy: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "policy"),
	})
	w.annotate(v1alpha1.AnnotationTrace, fmt.Sprintf("[{field: spec.forProvider.size, generation: %d, initiator: hans}]", w.u.GetGeneration()))
}

func (w *world) stamp(a v1alpha1.Allowance) {
	a = fixture.Sourced(a)
	list, _ := allowance.Parse(w.u)
	w.annotate(v1alpha1.AnnotationAllowances, allowance.FormatList(allowance.Merge(list, []v1alpha1.Allowance{a})))
	w.issued = append(w.issued, a)
}

// control is one reconcile of the gate controller.
func (w *world) control(t *rapid.T) gate.Plan {
	plan := checkPlan(t, w.u, w.opts, w.now)
	w.edited = false

	if plan.Move == gate.Stay {
		return plan
	}

	list, _ := allowance.Parse(w.u)
	was, _ := allowance.ParseGate(w.u)
	done := was != nil && was.Consumed < plan.Record.Consumed || len(list) > len(plan.Allowances)

	apply(w.u, plan)
	w.checkLanded(t, done)
	w.checkServed(t, plan)

	for _, a := range w.issued {
		if a.Generation <= plan.Record.Consumed {
			w.served = append(w.served, a)
		}
	}

	return plan
}

// tells reports whether the provider reports what it has done. One that does not say
// which generation it saw, or works in the background and does not show the
// field, can only be believed after a while.
func (w *world) tells() bool { return w.numbered && (w.shows || !w.async) }

// checkLanded checks that what is consumed is there.
func (w *world) checkLanded(t *rapid.T, done bool) {
	if done && w.size != w.spec() && w.tells() && len(w.issued) > 0 {
		t.Fatalf("consumed, and the external size is %d, not %d:\n%v", w.size, w.spec(), w.u.Object)
	}
}

// checkServed checks that nothing opens by what has served alone.
func (w *world) checkServed(t *rapid.T, plan gate.Plan) {
	if plan.Record.State == v1alpha1.GateClosed || plan.Record.Creating {
		return
	}

	var asked []string

	for _, a := range w.issued {
		same := func(b v1alpha1.Allowance) bool { return b.Generation == a.Generation && b.Policy == a.Policy }
		if !slices.ContainsFunc(w.served, same) {
			asked = append(asked, a.Mutations...)
		}
	}

	for _, a := range plan.Record.Actions {
		if !slices.Contains(asked, a) {
			t.Fatalf("open for %s, which has served: %+v", a, plan)
		}
	}
}

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"control": func(t *rapid.T) { w.control(t) },
		"provide": func(*rapid.T) { w.provide() },
		"finish":  func(t *rapid.T) { w.finish(rapid.Bool().Draw(t, "ok")) },
		"fail":    func(t *rapid.T) { w.failing = rapid.Bool().Draw(t, "failing") },
		"wait": func(t *rapid.T) {
			if w.silent {
				w.finish(rapid.Bool().Draw(t, "ok"))
			}

			if w.requeued {
				w.provide()
			}

			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 7200).Draw(t, "seconds")) * time.Second)
		},
		"change": func(t *rapid.T) {
			w.change(t, rapid.SampledFrom([][]string{{"Update"}, {"Create", "Update"}, {"Delete", "Create", "Update"}}).Draw(t, "mutations"))
		},
		"delete": func(t *rapid.T) {
			if rapid.IntRange(0, 4).Draw(t, "really") > 0 {
				t.Skip()
			}

			w.stamp(v1alpha1.Allowance{
				Relation: v1alpha1.RelationExternal, Mutations: []string{"Delete"}, Generation: w.u.GetGeneration(), Initiator: "hans", Policy: "d",
			})
		},
		"edit": func(t *rapid.T) {
			if rec, _ := allowance.ParseGate(w.u); rec == nil || w.edited {
				t.Skip()
			}

			set := management.Acting(someActions(t, "edit"))
			setPolicies(w.u, append(set, management.ActionObserve)...)
			w.u.SetGeneration(w.u.GetGeneration() + 1)
			w.edited = true
		},
		"stale": func(t *rapid.T) {
			if len(w.issued) == 0 {
				t.Skip()
			}

			list, _ := allowance.Parse(w.u)
			a := rapid.SampledFrom(w.issued).Draw(t, "stale stamp")
			w.annotate(v1alpha1.AnnotationAllowances, allowance.FormatList(allowance.Merge(list, []v1alpha1.Allowance{a})))
		},
	}
}

// recover lets everything work and time pass. It ends early where the gate is
// open for nothing but Delete, for the resource is gone then.
func (w *world) recover(t *rapid.T) (gone bool) {
	w.failing = false

	for range 40 {
		w.provide()
		w.finish(true)
		w.provide()

		if plan := w.control(t); slices.Equal(management.Acting(plan.Policies), []string{management.ActionDelete}) {
			return true
		}

		w.now = w.now.Add(10 * time.Minute)
	}

	return false
}

func TestEveryAllowanceIsServedOnceAndTheGateCloses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(w.actions())

		if w.recover(t) {
			return
		}

		rec, err := allowance.ParseGate(w.u)
		if err != nil || rec.State != v1alpha1.GateClosed || len(rec.Actions) > 0 || len(management.Acting(w.set())) > 0 || gate.Pending(w.u) {
			t.Fatalf("in the end: %+v, %v, %v", rec, w.set(), err)
		}

		desired, _ := management.Desired(w.u)

		for _, a := range w.issued {
			asked := slices.ContainsFunc(a.Mutations, func(action string) bool {
				return slices.Contains(desired, action) && (action != "Delete" || allowance.ByDeletion(a))
			})
			if asked && a.Generation > rec.Consumed {
				t.Errorf("not consumed: %+v by %+v", a, rec)
			}
		}

		if w.size != w.spec() && w.tells() && len(w.issued) > 0 {
			t.Errorf("the external size is %d, not %d", w.size, w.spec())
		}
	})
}
