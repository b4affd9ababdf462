// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/internal/doctor"
)

// probing is the name of what is made up to ask webhooks.
const probing = "kausality-doctor"

// probe asks a webhook, by a dry run.
func (c examination) probe(ctx context.Context, a doctor.Ask) doctor.Probe {
	if a.Own {
		return c.probePolicy(ctx, a)
	}

	u, err := c.subject(ctx, a)
	if err != nil {
		return doctor.Probe{Ask: a, Problem: err.Error()}
	}

	if u == nil {
		return doctor.Probe{Ask: a}
	}

	return c.probeChange(ctx, a, u)
}

// probePolicy asks the API server to create a policy that only the webhook
// refuses.
func (c examination) probePolicy(ctx context.Context, a doctor.Ask) doctor.Probe {
	src := doctor.AllowancePolicies
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": src.Group + "/" + src.Version,
		"kind":       "AllowancePolicy",
		"metadata":   map[string]any{"name": probing},
		"spec": map[string]any{
			"match": map[string]any{"kind": "Probe", "fields": []any{"spec["}},
			"allow": []any{map[string]any{"kind": "Probe", "mutations": []any{"spec"}}},
		},
	}}

	_, err := c.client.Resource(schema.GroupVersionResource{Group: src.Group, Version: src.Version, Resource: src.Resource}).
		Create(ctx, policy, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager})

	var status *apierrors.StatusError

	switch {
	case err == nil:
		return doctor.Probe{Ask: a}
	case errors.As(err, &status) && strings.Contains(status.Error(), "admission webhook"):
		return doctor.Probe{Ask: a, Answered: true}
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "webhook"):
		return doctor.Probe{Ask: a}
	default:
		return doctor.Probe{Ask: a, Problem: err.Error()}
	}
}

// probeChange asks the API server to annotate an object; where that goes on without
// the webhook, with what only Kausality may write, which the webhook does not let through.
// It is asked about nothing that changes nothing.
func (c examination) probeChange(ctx context.Context, a doctor.Ask, u *unstructured.Unstructured) doctor.Probe {
	out := doctor.Probe{Ask: a, Object: object(u)}

	key := probing
	if a.Open {
		key = v1alpha1.AnnotationTrace
	}

	patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, key, probing)

	at, err := c.at(u.GroupVersionKind(), u.GetNamespace())
	if err != nil {
		out.Problem = err.Error()

		return out
	}

	got, err := at.Patch(ctx, u.GetName(), types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: fieldManager, DryRun: []string{metav1.DryRunAll}})

	switch {
	case err == nil:
		out.Answered = !a.Open || got.GetAnnotations()[v1alpha1.AnnotationTrace] != probing
	case strings.Contains(err.Error(), fmt.Sprintf("admission webhook %q denied", a.Webhook)):
		out.Answered = true
	case !strings.Contains(err.Error(), fmt.Sprintf("failed calling webhook %q", a.Webhook)):
		out.Problem = err.Error()
	}

	return out
}

// subject finds an object that a webhook is asked about; nil for none.
func (c examination) subject(ctx context.Context, a doctor.Ask) (*unstructured.Unstructured, error) {
	var problems []error

	for _, src := range a.Sources {
		gvr, err := c.mapper.ResourceFor(schema.GroupVersionResource{Group: src.Group, Resource: src.Resource})
		if err != nil || strings.Contains(src.Resource, "/") {
			continue // It went meanwhile, or is a part of another one.
		}

		list, err := c.client.Resource(gvr).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(a.Labels).String(), Limit: page})
		if err != nil {
			problems = append(problems, err)

			continue
		}

		for i := range list.Items {
			if a.Suits(&list.Items[i]) {
				return &list.Items[i], nil
			}
		}
	}

	return nil, errors.Join(problems...)
}
