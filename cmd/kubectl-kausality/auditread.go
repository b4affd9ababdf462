// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/audit"
	"github.com/kausality-io/kausality-crossplane/internal/doctor"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// auditing looks at all there is to judge, a page of a kind at a time.
type auditing struct {
	*cluster

	show *progress
}

// auditedKind is a kind whose objects may be looked at.
type auditedKind struct {
	kind.Served

	namespaced bool
}

// revisionSource is where it says which XRs the function runs for.
func revisionSource() doctor.Source {
	return doctor.Source{Group: "apiextensions.crossplane.io", Version: "v1", Resource: "compositionrevisions"}
}

// look judges a cluster, or what belongs to a namespace. It returns false where not all
// could be read; that is a finding, too.
func (c auditing) look(ctx context.Context, opts auditOptions, now time.Time) (doc auditDocument, complete bool, err error) {
	doc = auditDocument{header: header{outputVersion, "Audit"}, Namespace: c.namespace, Findings: []audit.Finding{}}

	// 1. What is asked for.
	config, unread := c.config(ctx)

	revisions, problem := c.revisions(ctx, opts.functions)
	if problem != "" {
		unread[sourceName(revisionSource())] = problem
	}

	settings, err := c.options(ctx, opts, now, revisions)
	if err != nil {
		return doc, false, err
	}

	// 2. Which kinds there are.
	kinds, err := c.kindsServed(unread)
	if err != nil {
		return doc, false, err
	}

	// 3. Their objects: XRs and Claims first, which say what else is to be looked at.
	s := audit.NewSweep(settings, config)

	for _, crossplane := range []bool{true, false} {
		composed := s.Kinds()

		for i, k := range kinds {
			if k.Crossplane != crossplane || !crossplane && !matters(k, config.Admission, composed) {
				continue
			}

			n, problem := c.each(ctx, k, func(u *unstructured.Unstructured, n int) {
				c.show.showf("%s: %d objects; kind %d of %d", k.GroupResource(), n, i+1, len(kinds))
				s.Object(u)
			})
			if problem != "" {
				unread[k.GroupResource().String()] = problem
			}

			doc.Objects += n
			doc.Kinds++
		}
	}

	// 4. What is found out beside.
	if problem := c.records(ctx, s); problem != "" {
		unread[string(corev1.ResourceSecrets)] = problem
	}

	gone := c.lost(ctx, s.Owners(), unread)

	for _, what := range slices.Sorted(maps.Keys(unread)) {
		s.Unread(what, c.namespace, unread[what])
	}

	doc.Findings = append(doc.Findings, c.own(s.Findings(audit.Found{Gone: gone, Kinds: described(kinds, s.Kinds())}))...)

	return doc, len(unread) == 0, nil
}

// own are the findings that matter to the namespace that is looked at.
func (c auditing) own(list []audit.Finding) []audit.Finding {
	return slices.DeleteFunc(list, func(f audit.Finding) bool { return c.namespace != "" && f.Namespace != c.namespace })
}

// config reads what is asked for, and why it could not be.
func (c auditing) config(ctx context.Context) (out audit.Config, unread map[string]string) {
	unread = map[string]string{}

	for _, from := range []struct {
		source doctor.Source
		add    func(*unstructured.Unstructured) error
	}{
		{doctor.AllowancePolicies, func(u *unstructured.Unstructured) (err error) {
			out.Admission.Policies, err = appendAs(out.Admission.Policies, u)

			return err
		}},
		{doctor.AllowanceBindings, func(u *unstructured.Unstructured) (err error) {
			out.Bindings, err = appendAs(out.Bindings, u)

			return err
		}},
		{doctor.UpgradeAllowances, func(u *unstructured.Unstructured) (err error) {
			out.Admission.Windows, err = appendAs(out.Admission.Windows, u)

			return err
		}},
		{doctor.Enforcements, func(u *unstructured.Unstructured) (err error) {
			out.Admission.Enforcements, err = appendAs(out.Admission.Enforcements, u)

			return err
		}},
	} {
		list := c.list(ctx, from.source, c.namespace)
		if list.Absent {
			list.Problem = "nothing serves it: Kausality's CRDs are not installed"
		}

		if list.Problem != "" {
			unread[sourceName(from.source)] = list.Problem
		}

		for _, u := range list.Items {
			if err := from.add(u); err != nil {
				unread[sourceName(from.source)] = err.Error()
			}
		}
	}

	return out, unread
}

func sourceName(src doctor.Source) string { return src.Resource + "." + src.Group }

// revisions are the CompositionRevisions, by name: whether they run the function.
func (c auditing) revisions(ctx context.Context, functions []string) (runs map[string]bool, problem string) {
	runs = map[string]bool{}
	src := revisionSource()

	_, problem = c.each(ctx, auditedKind{Served: kind.Served{
		GVK:      schema.GroupVersionKind{Group: src.Group, Version: src.Version, Kind: resource.RevisionKind().Kind},
		Resource: src.Resource,
	}}, func(u *unstructured.Unstructured, n int) {
		c.show.showf("%s: %d objects", sourceName(src), n)

		runs[u.GetName()] = resource.RunsFunction(u, functions)
	})

	return runs, problem
}

// options are how the cluster is judged, by what its manager was started with. The
// error is that of a cluster that does not answer.
func (c auditing) options(ctx context.Context, opts auditOptions, now time.Time, revisions map[string]bool) (audit.Options, error) {
	lists := map[doctor.Source]doctor.List{}

	for _, src := range []doctor.Source{doctor.Mutating, doctor.Validating, doctor.Deployments} {
		lists[src] = c.list(ctx, src, "")
	}

	if _, err := c.discovery.ServerVersion(); err != nil {
		return audit.Options{}, fmt.Errorf("cannot reach the API server: %w", err)
	}

	manager := doctor.FindManager(lists)

	return audit.Options{
		Now: now, Revisions: revisions, HeldLonger: opts.heldLonger,
		Gate: gate.Options{
			MaxOpen: cmp.Or(opts.maxOpen, manager.MaxOpen, defaultMaxOpen), WithoutDrift: manager.WithoutDrift,
			PolicyGate: doctor.PolicyGates(c.list(ctx, doctor.AllowancePolicies, "")),
		},
	}, nil
}

// kindsServed are the kinds that the API server serves, in the version that their group
// prefers; what it cannot list is noted.
func (c auditing) kindsServed(unread map[string]string) ([]auditedKind, error) {
	lists, err := c.discovery.ServerPreferredResources()

	if partial, ok := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); ok {
		for gv, why := range partial.Groups {
			unread[gv.String()] = why.Error()
		}
	} else if err != nil {
		return nil, fmt.Errorf("cannot list the kinds of the cluster: %w", err)
	}

	var out []auditedKind

	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "update"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("cannot list the kinds of the cluster: %w", err)
		}

		for _, r := range list.APIResources {
			if skipped(schema.GroupResource{Group: gv.Group, Resource: r.Name}) {
				continue
			}

			has := func(category string) bool { return slices.Contains(r.Categories, category) }
			out = append(out, auditedKind{namespaced: r.Namespaced, Served: kind.Served{
				GVK: gv.WithKind(r.Kind), Resource: r.Name, Managed: has("managed"), Crossplane: has("composite") || has("claim"),
			}})
		}
	}

	slices.SortFunc(out, func(a, b auditedKind) int { return strings.Compare(a.GVK.String(), b.GVK.String()) })

	return out, nil
}

// matters reports whether anything of Kausality's may be on objects of a kind: XRs compose
// it by the function and it has gates, a policy or window names it, or an Enforcement
// covers it.
func matters(k auditedKind, config admission.Config, composed []schema.GroupVersionKind) bool {
	if slices.ContainsFunc(config.Names(), func(n kind.Name) bool { return n.Matches(k.GVK) }) {
		return true
	}

	// What belongs to the cluster itself an Enforcement of all kinds is about, too.
	for _, e := range admission.Covered(config.Enforcements, []kind.Served{k.Served}) {
		if len(e.Kinds) > 0 {
			return true
		}
	}

	return k.Managed && slices.ContainsFunc(composed, func(gvk schema.GroupVersionKind) bool { return gvk.GroupKind() == k.GVK.GroupKind() })
}

// described are what is known of some kinds; those that are not served are left out.
func described(kinds []auditedKind, list []schema.GroupVersionKind) []kind.Served {
	var out []kind.Served

	for _, gvk := range list {
		i := slices.IndexFunc(kinds, func(k auditedKind) bool { return k.GVK.GroupKind() == gvk.GroupKind() })
		if i < 0 {
			continue
		}

		k := kinds[i].Served
		k.GVK = gvk // The version that XRs refer to may be another one.
		out = append(out, k)
	}

	return out
}

// each goes through the objects of a kind, of all namespaces or of the one that is looked
// at. It returns how many there are, and why not all could be read; empty if they could.
func (c auditing) each(ctx context.Context, k auditedKind, visit func(u *unstructured.Unstructured, n int)) (n int, problem string) {
	namespace := c.namespace
	if !k.namespaced {
		namespace = ""
	}

	at := c.client.Resource(k.GVK.GroupVersion().WithResource(k.Resource)).Namespace(namespace)

	err := eachOf(ctx, at, func(u *unstructured.Unstructured) {
		n++

		visit(u, n)
	})

	switch {
	case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err): // It went meanwhile.
		return n, ""
	case err != nil:
		return n, err.Error()
	default:
		return n, ""
	}
}

// records judges the records of external objects whose managed resource is gone. They
// belong to no namespace of anybody's.
func (c auditing) records(ctx context.Context, s *audit.Sweep) (problem string) {
	if c.namespace != "" {
		return ""
	}

	at := c.client.Resource(corev1.SchemeGroupVersion.WithResource(string(corev1.ResourceSecrets))).Namespace(c.home)

	for opts := (metav1.ListOptions{Limit: page, LabelSelector: orphan.Label}); ; {
		list, err := at.List(ctx, opts)
		if err != nil {
			return err.Error()
		}

		for i := range list.Items {
			s.Record(audit.RefOf(&list.Items[i]), doctor.SecretData(&list.Items[i]))
		}

		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return ""
		}
	}
}

// lost are the owners that are not there any more. One that may not be read counts as
// there, and is noted.
func (c auditing) lost(ctx context.Context, owners []resource.Reference, unread map[string]string) map[resource.Reference]bool {
	out := map[resource.Reference]bool{}

	for i, ref := range owners {
		c.show.showf("owners: %d of %d", i+1, len(owners))

		owner, err := c.find(ctx, ref)

		switch {
		case errors.Is(err, served.ErrGone):
			out[ref] = true
		case err != nil:
			unread[ref.GroupKind().String()] = err.Error()
		case ref.UID != "" && string(owner.GetUID()) != ref.UID:
			out[ref] = true
		}
	}

	return out
}
