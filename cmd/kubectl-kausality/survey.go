// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/removal"
)

const (
	// page is how many objects are read at once.
	page = 500
	// quiet is how long a manager that runs may be without a sign of life: the
	// webhook gives one every ten seconds, a leader more often.
	quiet = 15 * time.Second
)

// named is an object by its kind, namespace if it has one, and name.
type named struct {
	gvk             schema.GroupVersionKind
	namespace, name string
}

// askers are what prevents everybody but the manager from changing what is governed.
func askers() []named {
	return append([]named{
		{gvk: registration("MutatingWebhookConfiguration"), name: v1alpha1.NameWebhooks},
		{gvk: registration("ValidatingWebhookConfiguration"), name: v1alpha1.NameWebhooks},
	}, guards(v1alpha1.NameWriterGuard, v1alpha1.NameBindGuard,
		v1alpha1.NameApprovalGuard, v1alpha1.NamePendingGuard, v1alpha1.NameHeldGuard)...)
}

// deletionGuards are what prevents things from being deleted.
func deletionGuards() []named {
	ours := v1alpha1.Definitions()
	names := append(make([]string, 0, 3+len(ours)), v1alpha1.NameDeleteGuard, v1alpha1.NameUsageGuard, v1alpha1.NameParameterGuard)

	for _, d := range ours {
		if !d.Unguarded {
			names = append(names, v1alpha1.PrefixDefinitionGuard+d.Plural)
		}
	}

	return guards(names...)
}

// guards are those of some names, the bindings before the policies.
func guards(names ...string) []named {
	out := make([]named, 0, 2*len(names))

	for _, kind := range []string{"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"} {
		for _, name := range names {
			out = append(out, named{gvk: registration(kind), name: name})
		}
	}

	return out
}

func registration(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind}
}

// removeAll removes objects; those that are gone already do not matter.
func (c uninstallation) removeAll(ctx context.Context, out io.Writer, list []named) error {
	verb := "is gone"
	if c.dry.on() {
		verb = "would go"
	}

	for _, n := range list {
		err := c.insist(ctx, func(ctx context.Context) error {
			u, err := c.read(ctx, n.gvk, n.namespace, n.name)
			if err != nil {
				return err
			}

			return c.remove(ctx, u)
		})
		if apierrors.IsNotFound(err) {
			continue
		}

		// In a dry run the guards are still there.
		if err != nil && (!c.dry.on() || !asksNobody(err)) {
			return err
		}

		if err := say(out, "%s %s %s\n", n.gvk.Kind, path(n.namespace, n.name), verb); err != nil {
			return err
		}
	}

	return nil
}

// own are the Leases, and the Secret with certificates, that managers made for
// themselves, and the Reports they keep.
func (c uninstallation) own(ctx context.Context) ([]named, error) {
	out, err := c.reports(ctx)
	if err != nil {
		return nil, err
	}

	for _, r := range []struct {
		gvr  schema.GroupVersionResource
		kind string
		ours func(*unstructured.Unstructured) bool
	}{
		{schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, "Lease", nil},
		{schema.GroupVersionResource{Version: "v1", Resource: string(corev1.ResourceSecrets)}, "Secret", removal.OwnCertificate},
	} {
		list, err := c.client.Resource(r.gvr).Namespace(c.home).List(ctx, metav1.ListOptions{LabelSelector: removal.OwnSelector})
		if err != nil {
			return nil, fmt.Errorf("cannot list what the manager made for itself in namespace %q: %w", c.home, err)
		}

		for i := range list.Items {
			if u := &list.Items[i]; r.ours == nil || r.ours(u) {
				out = append(out, named{r.gvr.GroupVersion().WithKind(r.kind), u.GetNamespace(), u.GetName()})
			}
		}
	}

	return out, nil
}

// concerned reads all objects of the cluster that have something of Kausality's
// on them.
func (c uninstallation) concerned(ctx context.Context, out io.Writer) ([]*unstructured.Unstructured, error) {
	// In the version that its group prefers, as the manager does: another one may
	// lack fields, and who writes it takes these away.
	lists, err := c.discovery.ServerPreferredResources()
	if err := c.unlisted(ctx, out, err); err != nil {
		return nil, err
	}

	var resources []schema.GroupVersionResource

	for _, l := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "patch"}}, lists) {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("cannot list the kinds of the cluster: %w", err)
		}

		for _, r := range l.APIResources {
			resources = append(resources, gv.WithResource(r.Name))
		}
	}

	slices.SortFunc(resources, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })

	var all []*unstructured.Unstructured

	for _, r := range resources {
		if skipped(r.GroupResource()) {
			continue
		}

		found, err := c.concernedOf(ctx, r)
		if err != nil {
			return nil, err
		}

		all = append(all, found...)
	}

	return all, nil
}

// skipped reports whether nothing of Kausality's is on objects of a kind: its own,
// and some of which there are many.
func skipped(gr schema.GroupResource) bool {
	return slices.Contains([]string{v1alpha1.Group, "events.k8s.io", "coordination.k8s.io", "admissionregistration.k8s.io"}, gr.Group) ||
		gr.Group == "" && slices.Contains([]string{"events", "secrets", "endpoints", "nodes"}, gr.Resource)
}

func (c uninstallation) concernedOf(ctx context.Context, gvr schema.GroupVersionResource) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured

	for opts := (metav1.ListOptions{Limit: page}); ; {
		list, err := c.client.Resource(gvr).List(ctx, opts)
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return out, nil // It went meanwhile.
		}

		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", gvr.GroupResource(), err)
		}

		for i := range list.Items {
			if removal.Concerns(&list.Items[i]) {
				out = append(out, &list.Items[i])
			}
		}

		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return out, nil
		}
	}
}

// unused reports whether no Composition runs the function any more.
func (c uninstallation) unused(ctx context.Context, functions []string) error {
	gvr := schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v1", Resource: "compositions"}

	list, err := c.client.Resource(gvr).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("cannot list Compositions: %w", err)
	}

	var problems []error

	for i := range list.Items {
		if resource.RunsFunction(&list.Items[i], functions) {
			problems = append(problems, fmt.Errorf("the pipeline of Composition %q runs %s: %w",
				list.Items[i].GetName(), strings.Join(functions, " or "), errInUse))
		}
	}

	return errors.Join(problems...)
}

// stopped watches for as long as a manager that runs may be quiet, and sees
// whether one gives a sign of life. By when its last one was nobody could know: the
// clock that says so is the manager's, and may be another than ours.
func (c uninstallation) stopped(ctx context.Context) error {
	gvr := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

	var before map[string]string

	err := wait.PollUntilContextTimeout(ctx, time.Second, quiet, true, func(ctx context.Context) (bool, error) {
		list, err := c.client.Resource(gvr).Namespace(c.home).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("cannot list leases of namespace %q: %w", c.home, err)
		}

		now := beats(list)
		if before != nil && beating(before, now) {
			return false, fmt.Errorf("the manager runs in namespace %q: %w", c.home, errRunning)
		}

		before = now

		return len(now) == 0, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil
	}

	return err
}

// beats are when the leases of managers that somebody holds were last renewed, in
// text, by name.
func beats(list *unstructured.UnstructuredList) map[string]string {
	out := map[string]string{}

	for i := range list.Items {
		u := &list.Items[i]
		if (strings.HasPrefix(u.GetName(), "kausality-") || u.GetLabels()[v1alpha1.LabelOwn] != "") && held(u) {
			out[u.GetName()] = resource.String(u.Object, "spec", "renewTime")
		}
	}

	return out
}

// beating reports whether a lease was renewed, or taken. Who ends gives one up, and
// that is no sign of life.
func beating(before, now map[string]string) bool {
	for name, renewed := range now {
		if before[name] != renewed {
			return true
		}
	}

	return false
}

// held reports whether a lease is still that of somebody: who ends gives up the one
// of the leader. The webhook's has no holder.
func held(lease *unstructured.Unstructured) bool {
	_, found := resource.Value(lease.Object, "spec", "holderIdentity")

	return !found || resource.String(lease.Object, "spec", "holderIdentity") != ""
}
