// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	k8smanagedfields "k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/internal/suggestion"
)

const crossplane = "system:serviceaccount:crossplane-system:crossplane"

// Who changes things.
func hans() policy.User {
	return policy.User{Name: "hans@example.com", Groups: []string{"platform-team"}}
}

func anna() policy.User { return policy.User{Name: "anna@example.com", Groups: []string{"app-team"}} }

func machine() policy.User { return policy.User{Name: crossplane} }

// world is a cluster of one root, what Crossplane makes of it, and a provider: each write is
// decided by the engine, each pipeline run by the function itself.
type world struct {
	suggestion.Material

	t        *testing.T
	policies *policy.Set
	claim    *unstructured.Unstructured
	xr       *node
	// let are the external actions that managed resources were given, by their kind and name.
	let map[string][]string
	uid int
	// now is when it is.
	now time.Time
	// mode of the function, and log of what is decided; nil for none.
	mode v1alpha1.Mode
	log  *recording
}

// node is an XR with what it is composed of.
type node struct {
	object      *unstructured.Unstructured
	composition *unstructured.Unstructured
	composed    map[string]*unstructured.Unstructured
	nested      map[string]*node
	held        []condition.Held
}

func (w *world) basis() request.Basis {
	return request.Basis{
		Policies: w.policies, Settings: request.Settings{Crossplane: crossplane}, Now: w.now,
	}
}

// start is when a world begins.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newWorld makes a root and settles what follows from it.
func newWorld(t *testing.T, m suggestion.Material, policies *policy.Set, root *unstructured.Unstructured) *world {
	t.Helper()

	w := &world{t: t, Material: m, policies: policies, mode: v1alpha1.ModeHold, now: start}
	w.make(root)

	return w
}

// make makes a root and settles what follows from it.
func (w *world) make(root *unstructured.Unstructured) {
	w.t.Helper()

	w.let = map[string][]string{}
	root = root.DeepCopy()
	root.SetUID("root")
	root.SetGeneration(1)

	made := w.decide(request.Request{Basis: w.basis(), Operation: request.OperationCreate, New: root, User: hans()})
	if !made.Allowed() {
		w.t.Fatalf("hans may not make it: %v", made.Findings)
	}

	root = made.Object.DeepCopy()
	ref := resource.Map(w.Composition.Object, "spec", "compositeTypeRef")

	if root.GetKind() == ref["kind"] {
		w.xr = w.node(root, w.Composition)
	} else {
		w.bind(root, ref)
	}

	w.settle()

	if held := w.held(); len(held) > 0 {
		w.t.Fatalf("held from the start: %v", held)
	}

	clear(w.let)
}

// decide decides what is put to the webhook.
func (w *world) decide(req request.Request) decision.Decision {
	d := decision.Decide(req)
	w.log.add(w.t, decisionlog.By{Part: decisionlog.PartMutate}, &req, &d)

	return d
}

// bind makes the XR of a Claim.
func (w *world) bind(claim *unstructured.Unstructured, ref map[string]any) {
	xr := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": ref["apiVersion"], "kind": ref["kind"], "metadata": map[string]any{"name": claim.GetName() + "-x7k2p"},
		"spec": runtime.DeepCopyJSON(resource.Map(claim.Object, "spec")),
	}}
	xr.SetUID("xr")
	xr.SetGeneration(1)
	xr.SetLabels(claim.GetLabels())

	spec := resource.Map(xr.Object, "spec")
	spec["compositionRef"] = map[string]any{"name": w.Composition.GetName()}
	spec["claimRef"] = map[string]any{
		"apiVersion": claim.GetAPIVersion(), "kind": claim.GetKind(), "namespace": claim.GetNamespace(), "name": claim.GetName(),
	}
	resource.Map(claim.Object, "spec")["resourceRef"] = map[string]any{
		"apiVersion": xr.GetAPIVersion(), "kind": xr.GetKind(), "name": xr.GetName(),
	}

	w.claim = claim
	w.xr = w.node(xr, w.Composition)
}

func (w *world) node(xr, c *unstructured.Unstructured) *node {
	if c != w.Composition || w.claim == nil && resource.Map(xr.Object, "spec", "claimRef") == nil {
		xr = xr.DeepCopy()

		spec := resource.Map(xr.Object, "spec")
		if spec == nil {
			spec = map[string]any{}
			xr.Object["spec"] = spec
		}

		spec["crossplane"] = map[string]any{"compositionRef": map[string]any{"name": c.GetName()}}
	}

	return &node{object: xr, composition: c, composed: map[string]*unstructured.Unstructured{}, nested: map[string]*node{}}
}

// root is what people edit.
func (w *world) root() *unstructured.Unstructured {
	if w.claim != nil {
		return w.claim
	}

	return w.xr.object
}

// edit has a user change the root, and settles what follows. It returns whether they might.
func (w *world) edit(user policy.User, field string, value any) bool {
	w.t.Helper()

	old := w.root()
	obj := old.DeepCopy()
	setPath(w.t, obj.Object, field, value)

	d := w.decide(request.Request{
		Basis: w.basis(), Operation: request.OperationUpdate, Old: old, New: obj, User: user, ParentSettles: w.claim == nil,
	})
	stored := d.Object.DeepCopy()
	stored.SetGeneration(old.GetGeneration() + generations(old, stored))

	if w.claim == nil {
		w.xr.object = stored
	} else {
		w.claim = stored
	}

	w.settle()

	return d.Allowed()
}

// generations is by how much a generation grows.
func generations(old, obj *unstructured.Unstructured) int64 {
	if change.Equal(old.Object["spec"], obj.Object["spec"]) && change.Equal(old.Object["data"], obj.Object["data"]) {
		return 0
	}

	return 1
}

// maxRounds is after how many rounds everything has settled.
const maxRounds = 12

// settle has Crossplane, the provider and the gates work until nothing changes.
func (w *world) settle() {
	w.t.Helper()

	for range maxRounds {
		before := w.snapshot()

		w.propagate()
		w.reconcile(w.xr)

		if before == w.snapshot() {
			return
		}
	}

	w.t.Fatal("it does not settle")
}

func (w *world) snapshot() string {
	var out strings.Builder

	if w.claim != nil {
		fmt.Fprintln(&out, w.claim.Object)
	}

	var walk func(n *node)

	walk = func(n *node) {
		fmt.Fprintln(&out, n.object.Object)

		for _, name := range slices.Sorted(maps.Keys(n.composed)) {
			u := n.composed[name].DeepCopy()
			u.SetManagedFields(nil) // They have times.
			fmt.Fprintln(&out, u.Object)
		}

		for _, name := range slices.Sorted(maps.Keys(n.nested)) {
			walk(n.nested[name])
		}
	}
	walk(w.xr)

	return out.String()
}

// propagate has Crossplane copy the Claim to its XR.
func (w *world) propagate() {
	if w.claim == nil {
		return
	}

	old := w.xr.object
	obj := old.DeepCopy()
	spec := runtime.DeepCopyJSON(resource.Map(w.claim.Object, "spec"))
	delete(spec, "resourceRef")

	for _, own := range []string{"compositionRef", "claimRef", "resourceRefs"} {
		if v, ok := resource.Map(old.Object, "spec")[own]; ok {
			spec[own] = v
		}
	}

	obj.Object["spec"] = spec
	obj.SetLabels(w.claim.GetLabels())

	d := w.decide(request.Request{
		Basis: w.basis(), Operation: request.OperationUpdate, Old: old, New: obj, Parent: w.claim, User: machine(),
	})
	w.xr.object = d.Object.DeepCopy()
	w.xr.object.SetGeneration(old.GetGeneration() + generations(old, w.xr.object))
}

// reconcile runs the pipeline of an XR once, applies what may be, and has what is below work.
func (w *world) reconcile(n *node) {
	w.t.Helper()

	want, err := render(w.t.Context(), n.composition, n.object, n.composed)
	if err != nil {
		w.t.Fatal(err)
	}

	names := slices.Collect(maps.Keys(n.composed))
	for name := range want.resources {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}

	slices.Sort(names)

	n.held = nil
	found := condition.Findings{Ready: true, Composed: len(want.resources), Now: w.basis().Now}

	for _, name := range names {
		out := composition.Decide(composition.Request{
			Basis: w.basis(), XR: n.object, Name: name, Observed: n.composed[name], Desired: want.resources[name],
			User: machine(), Mode: w.mode, Room: v1alpha1.MaxWishBytes, Asked: w.log.asked(w.t, n.object, name),
		})
		for _, p := range out.Problems {
			w.t.Fatal(p)
		}

		n.held = append(n.held, out.Held...)

		if out.Pending != "" {
			found.Pending = append(found.Pending, out.Pending)
		}

		if out.Desired != nil {
			w.apply(n, name, out.Desired)
		}
	}

	found.Held = n.held
	found.Status = condition.Report(n.object, want.xr, len(found.Pending) == 0)

	w.report(n, want.xr, condition.Summarize(n.object, found))

	for _, name := range slices.Sorted(maps.Keys(n.nested)) {
		child := n.nested[name]
		child.object = n.composed[name]
		w.reconcile(child)
		n.composed[name] = child.object
	}
}

// apply stores a composed resource as Crossplane applies it.
func (w *world) apply(n *node, name string, desired *unstructured.Unstructured) {
	w.t.Helper()

	live, desired := n.composed[name], desired.DeepCopy()
	made := live == nil

	if made {
		w.uid++
		live = &unstructured.Unstructured{Object: map[string]any{"apiVersion": desired.GetAPIVersion(), "kind": desired.GetKind()}}
		live.SetUID(types.UID(fmt.Sprintf("u%d", w.uid)))
		live.SetName(fmt.Sprintf("%s-%s", n.object.GetName(), name))
		live.SetNamespace(n.object.GetNamespace())
	}

	if desired.GetName() != "" {
		live.SetName(desired.GetName())
	}

	desired.SetName(live.GetName())
	desired.SetNamespace(live.GetNamespace())
	desired.SetResourceVersion("")
	own(n.object, name, desired)

	fields := managedfieldstest.NewFakeFieldManager(k8smanagedfields.NewDeducedTypeConverter(), desired.GroupVersionKind())

	applied, err := fields.Apply(live.DeepCopy(), desired, managedfields.ManagerOf(n.object), true)
	if err != nil {
		w.t.Fatalf("cannot apply %s: %v", name, err)
	}

	u, _ := applied.(*unstructured.Unstructured)
	u = u.DeepCopy()

	u.SetGeneration(live.GetGeneration() + generations(live, u))

	if made {
		u.SetGeneration(1)
	} else if resource.IsComposite(u) {
		// The webhook decides once more what the function let through.
		w.decide(request.Request{
			Basis: w.basis(), Operation: request.OperationUpdate, Old: live, New: withGeneration(u, live.GetGeneration()), Parent: n.object, User: machine(),
			ParentSettles: true,
		})
	}

	n.composed[name] = w.provide(u)
	w.nest(n, name, made)
}

func withGeneration(u *unstructured.Unstructured, generation int64) *unstructured.Unstructured {
	u = u.DeepCopy()
	u.SetGeneration(generation)

	return u
}

// own has a composed resource belong to its XR.
func own(xr *unstructured.Unstructured, name string, u *unstructured.Unstructured) {
	controller := true

	u.Object["metadata"] = maps.Clone(resource.Map(u.Object, "metadata"))
	resource.Map(u.Object, "metadata")["ownerReferences"] = []any{map[string]any{
		"apiVersion": xr.GetAPIVersion(), "kind": xr.GetKind(), "name": xr.GetName(), "uid": string(xr.GetUID()),
		"controller": controller, "blockOwnerDeletion": controller,
	}}

	annotations := maps.Clone(u.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}

	annotations["crossplane.io/composition-resource-name"] = name
	u.SetAnnotations(annotations)
}

func key(u *unstructured.Unstructured) string { return u.GetKind() + " " + u.GetName() }

// provide has the provider carry out what its gate lets out, and report it; the gate closes
// behind it.
func (w *world) provide(u *unstructured.Unstructured) *unstructured.Unstructured {
	if !resource.IsManaged(u) {
		return u
	}

	list, err := allowance.Parse(u)
	if err != nil {
		w.t.Fatal(err)
	}

	for _, a := range list {
		if allowance.External(a) {
			w.let[key(u)] = append(w.let[key(u)], a.Mutations...)
		}
	}

	annotations := u.GetAnnotations()
	delete(annotations, v1alpha1.AnnotationAllowances)
	annotations[v1alpha1.AnnotationGate] = fmt.Sprintf("{v: 1, state: Closed, generation: %d, since: 2026-01-01T00:00:00Z}", u.GetGeneration())
	u.SetAnnotations(annotations)

	outside := runtime.DeepCopyJSON(resource.Map(u.Object, "spec", "forProvider"))
	outside["id"] = fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(outside))))[:12]
	u.Object["status"] = map[string]any{
		"atProvider": outside,
		"conditions": []any{
			map[string]any{"type": "Synced", "status": "True", "observedGeneration": u.GetGeneration()},
			map[string]any{"type": "Ready", "status": "True"},
		},
	}

	return u
}

// nest has an XR that is composed be composed itself.
func (w *world) nest(n *node, name string, made bool) {
	u := n.composed[name]
	for _, c := range w.Compositions {
		ref := resource.Map(c.Object, "spec", "compositeTypeRef")
		if ref["kind"] != u.GetKind() || ref["apiVersion"] != u.GetAPIVersion() {
			continue
		}

		if made {
			n.nested[name] = w.node(u, c)
			n.composed[name] = n.nested[name].object
		}
	}
}

// report stores what an XR's status says.
func (w *world) report(n *node, want *unstructured.Unstructured, s condition.Status) {
	status := runtime.DeepCopyJSON(resource.Map(n.object.Object, "status"))
	if status == nil {
		status = map[string]any{}
	}

	merge(status, resource.Map(want.Object, "status"))

	allowed := "False"
	if s.Allowed {
		allowed = "True"
	}

	status["conditions"] = []any{
		map[string]any{"type": "Synced", "status": "True", "observedGeneration": n.object.GetGeneration()},
		map[string]any{"type": "Ready", "status": "True"},
		map[string]any{"type": v1alpha1.ConditionKausality, "status": allowed, "reason": s.Reason, "message": s.Message},
		map[string]any{"type": v1alpha1.ConditionState, "status": "True", "message": resource.FormatState(toldOf(s, n.held))},
	}

	n.object = n.object.DeepCopy()
	n.object.Object["status"] = status

	if w.claim != nil && n == w.xr {
		w.claim = w.claim.DeepCopy()
		w.claim.Object["status"] = map[string]any{"conditions": runtime.DeepCopyJSON(status)["conditions"]}
	}
}

func merge(into, from map[string]any) {
	for key, v := range from {
		below, ok := v.(map[string]any)
		have, also := into[key].(map[string]any)

		if ok && also {
			merge(have, below)
		} else {
			into[key] = v
		}
	}
}

// held is all that is held, at each level.
func (w *world) held() []string {
	var out []string

	var walk func(n *node)

	walk = func(n *node) {
		for _, h := range append(condition.HeldOn(n.object), n.held...) {
			kind, _, _ := strings.Cut(h.Resource, " ")
			out = append(out, kind+" "+h.Change.Field)
		}

		for _, name := range slices.Sorted(maps.Keys(n.nested)) {
			walk(n.nested[name])
		}
	}
	walk(w.xr)

	slices.Sort(out)

	return out
}

// objects are all that is composed, by level and name.
func (w *world) objects() map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}

	var walk func(prefix string, n *node)

	walk = func(prefix string, n *node) {
		for name, u := range n.composed {
			out[prefix+name] = u
		}

		for name, child := range n.nested {
			walk(prefix+name+"/", child)
		}
	}
	walk("", w.xr)

	return out
}

// toldOf is what the manager is told of what an XR composes.
func toldOf(s condition.Status, held []condition.Held) v1alpha1.State {
	out := v1alpha1.State{Progress: s.Progress}

	for _, h := range held {
		switch {
		case h.OnXR:
		case h.Passed:
			out.Passed = append(out.Passed, h.Change)
		default:
			out.Changes = append(out.Changes, h.Change)
		}
	}

	return out
}
