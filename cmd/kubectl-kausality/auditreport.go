// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/internal/audit"
	"github.com/kausality-io/kausality-crossplane/internal/openreport"
)

// auditName is the name of Reports, and the source of results, that are written by this
// command: the manager's have another one, so that neither overwrites the other's.
const auditName = "kausality-audit"

// errNoReports is the cause when Reports are to be written and nothing serves them.
var errNoReports = errors.New("install the CRDs of OpenReports, " + openreport.CRDReports + " and " + openreport.CRDClusterReports)

// reporting writes Reports.
type reporting struct{ *cluster }

// write writes what was found, and deletes the Reports of an earlier run for which nothing
// is left; none where not all could be looked at. It returns those that were written or
// deleted, or would be.
func (c reporting) write(ctx context.Context, found []audit.Finding, complete bool, now time.Time) ([]reportRef, error) {
	before, err := c.earlier(ctx)
	if err != nil {
		return nil, err
	}

	by := openreport.ByNamespace(found)

	for _, namespace := range openreport.Namespaces(by) {
		err := c.writeOne(ctx, namespace, before[namespace], by[namespace], now)
		if openreport.NamespaceGone(err) && c.namespace == "" {
			by[""], err = append(by[""], by[namespace]...), nil
		}

		if err != nil {
			return nil, err
		}
	}

	out := make([]reportRef, 0, len(c.written)+len(before))
	for _, ref := range c.written {
		out = append(out, reportRef{objectRef: ref})
	}

	for _, namespace := range slices.Sorted(maps.Keys(before)) {
		if _, left := by[namespace]; left || !complete || c.namespace != "" && namespace != c.namespace {
			continue
		}

		u, err := openreport.Unstructured(before[namespace])
		if err != nil {
			return out, err
		}

		if err := c.remove(ctx, u); err != nil {
			return out, err
		}

		ref := refOf(u)
		ref.Generation = 0
		out = append(out, reportRef{objectRef: ref, Deleted: true})
	}

	return out, nil
}

// writeOne writes a Report, if there is anything to report that it does not say. It was there
// before, or is nil.
func (c reporting) writeOne(ctx context.Context, namespace string, report openreport.Object, found []audit.Finding, now time.Time) error {
	if len(found) == 0 {
		return nil
	}

	if report == nil {
		report = openreport.New(namespace)
	}

	author := openreport.Author{Name: auditName, ManagedBy: fieldManager}
	if !author.Write(report, found, now) {
		return nil
	}

	return c.apply(ctx, report)
}

// earlier are the Reports that this command wrote before, by namespace.
func (c reporting) earlier(ctx context.Context) (map[string]openreport.Object, error) {
	out := map[string]openreport.Object{}

	for _, kind := range []string{openreport.KindReport, openreport.KindClusterReport} {
		m, err := c.mapper.RESTMapping(schema.GroupKind{Group: v1alpha1.GroupName, Kind: kind}, v1alpha1.GroupVersion.Version)
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("cannot write %ss: %w", kind, errNoReports)
		}

		if err != nil {
			return nil, fmt.Errorf("cannot find kind %q: %w", kind, err)
		}

		opts := metav1.ListOptions{Limit: page, LabelSelector: openreport.LabelManagedBy + "=" + fieldManager}

		for {
			// Cluster-scoped ones are in no namespace.
			list, err := c.client.Resource(m.Resource).Namespace(c.reportsIn(m)).List(ctx, opts)
			if err != nil {
				return nil, fmt.Errorf("cannot list %ss: %w", kind, err)
			}

			for i := range list.Items {
				if err := add(out, &list.Items[i]); err != nil {
					return nil, err
				}
			}

			if opts.Continue = list.GetContinue(); opts.Continue == "" {
				break
			}
		}
	}

	return out, nil
}

// reportsIn is where the Reports of a kind are that are looked at.
func (c reporting) reportsIn(m *meta.RESTMapping) string {
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return ""
	}

	return c.namespace
}

// add reads one Report; others than those this command writes are none of ours.
func add(out map[string]openreport.Object, u *unstructured.Unstructured) error {
	if u.GetName() != auditName {
		return nil
	}

	report := openreport.New(u.GetNamespace())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, report); err != nil {
		return fmt.Errorf("cannot read %s: %w", strings.TrimSpace(object(u)), err)
	}

	out[u.GetNamespace()] = report

	return nil
}

// apply writes a Report by server-side apply.
func (c reporting) apply(ctx context.Context, report openreport.Object) error {
	u, err := openreport.Unstructured(report)
	if err != nil {
		return err
	}

	u.SetResourceVersion("") // Nobody else writes it; what is newer was written by us.
	u.SetUID("")
	u.SetManagedFields(nil)
	u.SetGeneration(0)

	if c.dry.local() {
		c.note(u)

		return nil
	}

	at, err := c.at(u.GroupVersionKind(), u.GetNamespace())
	if err != nil {
		return err
	}

	if _, err := at.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: fieldManager, Force: true, DryRun: c.dryRun()}); err != nil {
		return fmt.Errorf("cannot apply %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	c.note(u)

	return nil
}
