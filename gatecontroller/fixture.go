// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/internal/access"
)

// servedKinds are those of a small cluster.
func servedKinds() []servedKind {
	gvk := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	}

	return []servedKind{
		{gvk: gvk("", "ConfigMap"), resource: "configmaps"},
		{gvk: gvk("", "Pod"), resource: "pods"},
		{gvk: gvk("apps", "Deployment"), resource: "deployments", scales: true},
		{gvk: gvk("apps", "ReplicaSet"), resource: "replicasets", scales: true},
		{gvk: gvk("example.org", "XDatabase"), resource: "xdatabases", crossplane: true},
		{gvk: gvk("rds.aws.upbound.io", "Instance"), resource: "instances", managed: true},
	}
}

func documents[T any](tb testing.TB, texts ...string) []T {
	tb.Helper()

	out := make([]T, len(texts))

	for i, text := range texts {
		if err := yaml.UnmarshalStrict([]byte(text), &out[i]); err != nil {
			tb.Fatal(err)
		}
	}

	return out
}

// asked writes rules as "group/resources OPERATIONS".
func asked(list []admissionregistrationv1.RuleWithOperations) []string {
	out := make([]string, len(list))

	for i, r := range list {
		ops := make([]string, len(r.Operations))
		for j, op := range r.Operations {
			ops[j] = string(op)
		}

		out[i] = fmt.Sprintf("%s/%s %s", r.APIGroups[0], strings.Join(r.Resources, ","), strings.Join(ops, ","))
	}

	return out
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}

	return u
}

// counted are all metrics that are not 0, as NAME{VALUES} VALUE.
func counted(t *testing.T, reg *prometheus.Registry) []string {
	t.Helper()

	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}

	var out []string

	for _, f := range families {
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}

			v := fmt.Sprint(m.GetCounter().GetValue() + m.GetGauge().GetValue())
			if h := m.GetHistogram(); h != nil {
				v = fmt.Sprintf("%d, %vs", h.GetSampleCount(), h.GetSampleSum())
			}

			if v != "0" {
				out = append(out, strings.TrimPrefix(f.GetName(), "kausality_")+"{"+strings.Join(values, ",")+"} "+v)
			}
		}
	}

	return out
}

var errBroken = errors.New("no such key: x")

// gauges returns the values of a metric, by exception.
func gauges(tb testing.TB, reg prometheus.Gatherer, name string) map[string]float64 {
	tb.Helper()

	families, err := reg.Gather()
	if err != nil {
		tb.Fatal(err)
	}

	out := map[string]float64{}

	for _, f := range families {
		if f.GetName() != name {
			continue
		}

		for _, m := range f.GetMetric() {
			out[m.GetLabel()[1].GetValue()] = m.GetGauge().GetValue()
		}
	}

	return out
}

var errRefused = errors.New("the status is refused")

var errUnavailable = errors.New("the server is currently unable to handle the request")

// roles are the rights that we have, by resource; each may be done anything with.
type roles struct {
	of  map[string]bool
	now time.Time
}

func (r *roles) access() *access.Access {
	return access.Asking(func(_ context.Context, asked right.Right) (bool, error) {
		return r.of[strings.Split(asked.Resource, "/")[0]], nil
	}, func() time.Time { return r.now })
}

// soon is when a denial is looked at again.
func (r *roles) soon() { r.now = r.now.Add(time.Minute) }

const (
	rolloutPolicy = `{metadata: {name: p}, spec: {match: {kind: Deployment, fields: [spec.template]}, allow: [{kind: ReplicaSet, mutations: [create, spec.replicas]}]}}`
	deletePolicy  = `{metadata: {name: q}, spec: {match: {kind: ReplicaSet, fields: [delete]}, allow: [{kind: Pod, mutations: [spec]}]}}`
	claimPolicy   = `{metadata: {name: r}, spec: {match: {kind: XDatabase, fields: [spec.size]}, allow: [{kind: Instance, mutations: [spec.forProvider]}]}}`
)

func builtInAndCustom() []servedKind {
	return []servedKind{
		{gvk: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, resource: "configmaps", owns: true},
		{gvk: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Yard"}, resource: "yards", definition: "d", owns: true},
	}
}
