// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/internal/openreport"
)

// managerReports is what the manager's Reports are labelled with.
const managerReports = "kausality-manager"

// reports are the Reports of OpenReports that managers and kubectl kausality audit keep:
// nobody would say any more that what they tell has ended.
func (c uninstallation) reports(ctx context.Context) ([]named, error) {
	var out []named

	for _, kind := range []string{openreport.KindReport, openreport.KindClusterReport} {
		m, err := c.mapper.RESTMapping(schema.GroupKind{Group: v1alpha1.GroupName, Kind: kind}, v1alpha1.GroupVersion.Version)
		if meta.IsNoMatchError(err) {
			continue
		}

		if err != nil {
			return nil, fmt.Errorf("cannot find kind %q: %w", kind, err)
		}

		opts := metav1.ListOptions{Limit: page, LabelSelector: openreport.LabelManagedBy + " in (" + managerReports + ", " + fieldManager + ")"}

		for {
			list, err := c.client.Resource(m.Resource).List(ctx, opts)
			if err != nil {
				return nil, fmt.Errorf("cannot list %ss: %w", kind, err)
			}

			for i := range list.Items {
				out = append(out, named{m.GroupVersionKind, list.Items[i].GetNamespace(), list.Items[i].GetName()})
			}

			if opts.Continue = list.GetContinue(); opts.Continue == "" {
				break
			}
		}
	}

	return out, nil
}
