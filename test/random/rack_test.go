// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package random_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// deskNamespace is where racks are, that players decide about.
const deskNamespace = "desk"

// Who decides: anna, too, but not about what she asks for.
const (
	annaName  = "anna@example.com"
	bertaName = "berta@example.com"
	claraName = "clara@example.com"
)

// desk is the cast, and everybody who decides about what is held.
type desk struct {
	cast

	typed     client.Client
	approvers map[string]world.Approver
	audit     *auditLog
}

func newDesk(t *testing.T) desk {
	t.Helper()

	d := desk{
		cast: newCast(t), typed: world.ConnectTyped(t, running.Config()), approvers: map[string]world.Approver{},
		audit: &auditLog{events: map[string][]auditEvent{}},
	}

	for _, user := range []string{annaName, bertaName, claraName} {
		d.approvers[user] = world.NewApprover(t, running, deskNamespace, user,
			[3]string{v1alpha1.VerbApprove, serverKind().Group, "servers"}, [3]string{v1alpha1.VerbApproveDestructive, serverKind().Group, "servers"})
	}

	return d
}

// A rack is an XR of a server, and perhaps of a spare one.
type rack struct {
	desk

	name string
}

func rackKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: "Rack"}
}

// main and spare are the names of its servers.
func (r rack) main() string { return r.name }

func (r rack) spare() string { return r.name + "-spare" }

// reference is what names it in a request.
func (r rack) reference() *unstructured.Unstructured { return r.part(rackKind(), r.name) }

func (rack) part(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	u := world.Prototype(gvk)
	u.SetName(name)
	u.SetNamespace(deskNamespace)

	return u
}

// composition composes its servers, each with a tag that says which release it is of.
func (r rack) composition(release string, spare bool, traits []any) *unstructured.Unstructured {
	servers := []any{r.composed("main", "%s", release, traits)}
	if spare {
		servers = append(servers, r.composed("spare", "%s-spare", release, traits))
	}

	u := world.Prototype(schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"})
	u.SetName(r.name)
	u.SetLabels(map[string]string{labelRelease: release})
	u.Object["spec"] = map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": rackKind().GroupVersion().String(), "kind": rackKind().Kind},
		"mode":             "Pipeline",
		"pipeline": []any{
			map[string]any{
				"step": "compose", "functionRef": map[string]any{"name": "function-patch-and-transform"},
				"input": map[string]any{"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": servers},
			},
			map[string]any{"step": "ready", "functionRef": map[string]any{"name": "function-auto-ready"}},
			map[string]any{"step": "kausality", "functionRef": map[string]any{"name": "function-kausality"}},
		},
	}

	return u
}

func (rack) composed(name, format, release string, traits []any) map[string]any {
	spec := map[string]any{"forProvider": map[string]any{"tags": map[string]any{"release": release}}}
	if len(traits) > 0 {
		spec["traits"] = traits
	}

	patch := func(from, to string) map[string]any { return map[string]any{"fromFieldPath": from, "toFieldPath": to} }
	named := patch("metadata.name", "metadata.name")
	named["transforms"] = []any{map[string]any{"type": "string", "string": map[string]any{"type": "Format", "fmt": format}}}

	return map[string]any{
		"name": name,
		"base": map[string]any{"apiVersion": serverKind().GroupVersion().String(), "kind": serverKind().Kind, "spec": spec},
		"patches": []any{
			named, patch("spec.size", "spec.forProvider.size"), patch("spec.color", "spec.forProvider.color"),
		},
	}
}

// pending is what is held of it; nil where nothing was yet.
func (r rack) pending(ctx context.Context) (*v1alpha1.PendingChange, error) {
	pch := &v1alpha1.PendingChange{}
	pch.Namespace, pch.Name = deskNamespace, pending.Name(rackKind().GroupKind(), r.name)

	err := r.typed.Get(ctx, client.ObjectKeyFromObject(pch), pch)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // None is no error.
	}

	return pch, err
}

// pinned checks that what the XR says it would make is what is asked for now: by its newest version,
// and the newest of its Composition, which composes a release. A list does not say what is
// made, but by its digest.
func (r rack) pinned(ctx context.Context, release, digest string) error {
	xr := r.reference()
	if err := r.admin.Get(ctx, client.ObjectKeyFromObject(xr), xr); err != nil {
		return err
	}

	list, ok := resource.StateOf(xr)
	if !ok || list.Progress.Generation != xr.GetGeneration() || !slices.ContainsFunc(list.Changes, func(e v1alpha1.HeldChange) bool { return e.Digest == digest }) {
		return fmt.Errorf("the XR does not say that: %+v: %w", list, world.ErrOther)
	}

	revision := world.Prototype(schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"})
	if err := r.admin.Get(ctx, client.ObjectKey{Name: resource.String(xr.Object, "spec", "crossplane", "compositionRevisionRef", "name")}, revision); err != nil {
		return err
	}

	if got := revision.GetLabels()[labelRelease]; got != release {
		return fmt.Errorf("the XR is at release %q, not %q: %w", got, release, world.ErrOther)
	}

	return nil
}

// revised checks that there is a revision of its Composition of a release.
func (r rack) revised(ctx context.Context, release string) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevisionList"})

	err := r.admin.List(ctx, list, client.MatchingLabels{"crossplane.io/composition-name": r.name, labelRelease: release})
	if err == nil && len(list.Items) == 0 {
		err = fmt.Errorf("there is none of release %q: %w", release, world.ErrOther)
	}

	return err
}

// labelRelease is on Compositions, and so on their revisions.
const labelRelease = "example.org/release"

// fieldsOfServer are those that a rack asks for, by what they are called in the ledger.
func fieldsOfServer() map[string]string {
	return map[string]string{
		"spec.forProvider.size": "size", "spec.forProvider.color": "color", "spec.forProvider.tags.release": "release",
		v1alpha1.MutationCreate: fieldCreate, v1alpha1.MutationDelete: fieldDelete,
	}
}

// approvable is a change as it is listed. What is to be made has the values that are asked for.
func (r rack) approvable(e v1alpha1.HeldChange, asked values) (approvable, error) {
	field, ok := fieldsOfServer()[e.Field]
	if !ok || e.Ref.Kind != serverKind().Kind {
		return approvable{}, fmt.Errorf("a change is listed of what no rack asks for: %+v: %w", e, world.ErrOther)
	}

	a := approvable{name: r.main(), uid: string(e.Ref.UID), field: field}
	if e.ComposedResource == "spare" {
		a.name = r.spare()
	}

	switch field {
	case fieldCreate:
		a.made, a.uid = asked, ""
	case fieldDelete:
	default:
		a.from, a.value = e.From, e.To
	}

	return a, nil
}

// valuesOf are those of an external object, or of a payload.
func valuesOf(p parameters) values {
	out := values{}

	for _, field := range []string{"size", "color"} {
		if v, ok := p[field]; ok {
			out[field] = fmt.Sprint(v)
		}
	}

	if tags, ok := p["tags"].(map[string]any); ok {
		for key, value := range tags {
			out[key] = fmt.Sprint(value)
		}
	}

	return out
}

// outsideOf are its external objects.
func (r rack) outsideOf() map[string]values {
	out := map[string]values{}

	for _, name := range []string{r.main(), r.spare()} {
		if state, there := outside.State(name); there {
			out[name] = valuesOf(state)
		}
	}

	return out
}

// callsOf are those that were to change its external objects.
func (r rack) callsOf() (out []call, closed []string) {
	for _, name := range []string{r.main(), r.spare()} {
		for _, c := range outside.Changes(name) {
			one := call{name: name, uid: c.Managed.UID, verb: c.Verb, at: c.At, payload: valuesOf(c.Payload)}
			rec := recordOf(c)

			for _, a := range slices.Concat(rec.Allowances, allowancesOf(c)) {
				if allowance.External(a) && len(a.Trace) > 0 && a.Trace[0].Kind == "ChangeApproval" && !slices.Contains(one.approvals, a.Trace[0].Name) {
					one.approvals = append(one.approvals, a.Trace[0].Name)
				}
			}

			if !slices.Contains(c.Managed.Policies, string(c.Verb)) || rec.State != "" && (rec.State != v1alpha1.GateOpen || !slices.Contains(rec.Actions, string(c.Verb))) {
				closed = append(closed, fmt.Sprintf("a call through a gate that is not open for it: %s, gate%s", c, briefRecord(rec)))
			}

			out = append(out, one)
		}
	}

	slices.SortStableFunc(out, func(a, b call) int { return a.at.Compare(b.at) })

	return out, closed
}

// quiet checks that the XR is settled, with nothing that is allowed or approved under way: what is asked
// for of its servers is outside, or listed as held.
func (r rack) quiet(ctx context.Context, asked map[string]values, mine []own) error {
	release := asked[r.main()]["release"]
	xr := r.reference()
	if err := r.admin.Get(ctx, client.ObjectKeyFromObject(xr), xr); err != nil {
		return err
	}

	c, _ := resource.ConditionOf(xr, v1alpha1.ConditionKausality)
	if list, err := allowance.Parse(xr); err != nil || len(list) > 0 || !strings.HasPrefix(c.Message, fixture.SettledMessage(xr.GetGeneration())) {
		return fmt.Errorf("at generation %d it carries %d allowances (%w) and says %q: %w", xr.GetGeneration(), len(list), err, c.Message, world.ErrOther)
	}

	pch, err := r.pending(ctx)
	if err != nil {
		return err
	}

	if pch != nil {
		for _, e := range pch.Status.Changes {
			if e.Field == v1alpha1.MutationCreate {
				if err := r.pinned(ctx, release, e.Digest); err != nil {
					return err
				}
			}
		}
	}

	is := r.outsideOf()

	for _, name := range []string{r.main(), r.spare()} {
		if err := r.heldOrMade(pch, name, asked[name], is[name]); err != nil {
			return err
		}

		if _, there := is[name]; !there {
			continue
		}

		if err := (server{cast: r.cast, namespace: deskNamespace, name: name}).closed(ctx); err != nil {
			return err
		}
	}

	return r.decided(ctx, pch, mine)
}

// heldOrMade checks that a server is as it is asked for, or that what differs, and nothing else, is
// listed. None is asked for, or there, where there are no values.
func (r rack) heldOrMade(pch *v1alpha1.PendingChange, name string, asked, is values) error {
	var want []approvable

	switch {
	case asked != nil && is == nil:
		want = append(want, approvable{name: name, field: fieldCreate, made: asked})
	case asked == nil && is != nil:
		want = append(want, approvable{name: name, field: fieldDelete})
	case asked != nil:
		for _, field := range differing(asked, is) {
			want = append(want, approvable{name: name, field: field, value: asked[field]})
		}
	}

	var listed []approvable

	if pch != nil {
		if !meta.IsStatusConditionTrue(pch.Status.Conditions, v1alpha1.ConditionCurrent) {
			return fmt.Errorf("the list is not current: %+v: %w", pch.Status.Conditions, world.ErrOther)
		}

		for _, e := range pch.Status.Changes {
			a, err := r.approvable(e, asked)
			if err != nil {
				return err
			}

			if a.uid = ""; a.name == name {
				listed = append(listed, a)
			}
		}
	}

	order := func(a, b approvable) int { return strings.Compare(a.field, b.field) }
	slices.SortFunc(listed, order)
	slices.SortFunc(want, order)

	if !slices.EqualFunc(want, listed, func(a, b approvable) bool { return a.field == b.field && a.value == b.value }) {
		return fmt.Errorf("%s is %v and asked to be %v, and listed is %+v: %w", name, is, asked, listed, world.ErrOther)
	}

	return nil
}

// decided checks that ChangeApprovals wait for nothing but another approver.
func (r rack) decided(ctx context.Context, pch *v1alpha1.PendingChange, mine []own) error {
	for _, m := range mine {
		if !m.ended.IsZero() {
			continue
		}

		cha := &v1alpha1.ChangeApproval{}
		if err := r.typed.Get(ctx, client.ObjectKeyFromObject(m.cha), cha); err != nil {
			return err
		}

		if len(cha.Status.Changes) != len(cha.Spec.Changes) {
			return fmt.Errorf("of ChangeApproval %q is known %+v: %w", cha.Name, cha.Status.Changes, world.ErrOther)
		}

		for _, d := range cha.Status.Changes {
			waits := d.State == v1alpha1.ApprovalStateWaiting && pch != nil && pch.Status.Required > 1
			rejected := d.State == v1alpha1.ApprovalStateRejected && rejects(mine, d.Digest)

			if !waits && !d.State.Final() && !rejected {
				return fmt.Errorf("ChangeApproval %q: %+v: %w", cha.Name, d, world.ErrOther)
			}
		}
	}

	return nil
}

// rejects reports whether a change is rejected by one of several ChangeApprovals that are there.
func rejects(mine []own, digest string) bool {
	return slices.ContainsFunc(mine, func(m own) bool {
		return m.ended.IsZero() && m.cha.Spec.Decision == v1alpha1.DecisionReject && slices.Contains(m.cha.Spec.Changes, digest)
	})
}

// denied reports whether an API server has refused a request for good: not because it cannot ask
// the webhook, or does not know roles yet.
func denied(err error) bool {
	return err != nil && strings.Contains(err.Error(), "denied")
}

// create has somebody make a ChangeApproval, until the API server takes it, or refuses it.
func (r rack) create(ctx context.Context, who string, cha *v1alpha1.ChangeApproval) (*v1alpha1.ChangeApproval, error) {
	var refused error

	err := eventually(ctx, "a ChangeApproval", func(ctx context.Context) error {
		err := r.approvers[who].Create(ctx, cha.DeepCopy())
		if denied(err) {
			refused = err

			return nil
		}

		return client.IgnoreAlreadyExists(err) // The answer to an earlier attempt was lost.
	})
	if err != nil || refused != nil {
		return nil, errors.Join(err, refused)
	}

	out := &v1alpha1.ChangeApproval{}

	return out, eventually(ctx, "what was made", func(ctx context.Context) error {
		return r.typed.Get(ctx, client.ObjectKeyFromObject(cha), out)
	})
}

// remove has somebody delete one, until it is gone, or the API server refuses that.
func (r rack) remove(ctx context.Context, who string, cha *v1alpha1.ChangeApproval) error {
	var refused error

	err := eventually(ctx, "a deletion", func(ctx context.Context) error {
		err := r.approvers[who].Delete(ctx, &v1alpha1.ChangeApproval{ObjectMeta: metav1.ObjectMeta{Namespace: cha.Namespace, Name: cha.Name}},
			client.Preconditions{UID: &cha.UID})
		if denied(err) {
			refused = err

			return nil
		}

		return client.IgnoreNotFound(err)
	})

	return errors.Join(err, refused)
}
