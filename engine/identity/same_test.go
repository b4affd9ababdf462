// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func TestTwoManagedResourcesMayStandForTheSame(t *testing.T) {
	shows := func(text, status string) string {
		return strings.TrimSuffix(text, "}") + ", status: {atProvider: " + status + "}}"
	}

	for name, tc := range map[string]struct {
		a, b string
		want bool
	}{
		"Same":                 {ofKubernetes, ofKubernetes, true},
		"Cluster-scoped":       {ofKubernetes, strings.NewReplacer("kubernetes.m.", "kubernetes.", "kind: ClusterProviderConfig, ", "").Replace(ofKubernetes), true},
		"Another config":       {ofKubernetes, strings.Replace(ofKubernetes, "name: default", "name: other", 1), false},
		"Another version":      {ofKubernetes, strings.Replace(ofKubernetes, "apps/v1", "apps/v1beta1", 1), true},
		"Another name":         {ofKubernetes, strings.Replace(ofKubernetes, "name: web", "name: api", 1), false},
		"Shown to be same":     {shows(ofKubernetes, "{manifest: {metadata: {uid: u}}}"), shows(strings.Replace(ofKubernetes, "name: default", "name: other", 1), "{manifest: {metadata: {uid: u}}}"), true},
		"Shown not to be":      {shows(ofKubernetes, "{manifest: {metadata: {uid: u}}}"), shows(ofKubernetes, "{manifest: {metadata: {uid: v}}}"), false},
		"Cloud":                {ofCloud, ofCloud, true},
		"No name":              {ofCloud, strings.Replace(ofCloud, ", annotations: {crossplane.io/external-name: db-1}", "", 1), false},
		"Another region":       {ofCloud, strings.Replace(ofCloud, "eu-central-1", "us-east-1", 1), false},
		"No region":            {ofCloud, strings.Replace(ofCloud, "region: eu-central-1, ", "", 1), true},
		"Another id":           {shows(ofCloud, "{id: a}"), shows(ofCloud, "{id: b}"), false},
		"Another provider":     {shows(ofCloud, "{arn: x}"), shows(strings.Replace(ofCloud, "rds.aws.upbound.io", "rds.aws.crossplane.io", 1), "{arn: x}"), true},
		"Unshown provider":     {ofCloud, strings.Replace(ofCloud, "rds.aws.upbound.io", "rds.aws.crossplane.io", 1), false},
		"ARN of what it is of": {shows(ofCloud, "{arn: x}"), shows(strings.Replace(ofCloud, "kind: Instance", "kind: InstancePolicy", 1), "{arn: x}"), false},
		"Grants":               {ofSQL, ofSQL, true},
		"Another grant":        {ofSQL, strings.Replace(ofSQL, "role: reader", "role: writer", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := object(t, tc.a), object(t, tc.b)
			if got := identity.Same(a, b, nil); got != tc.want || identity.Same(b, a, nil) != got {
				t.Errorf("the same: %t, %t", got, identity.Same(b, a, nil))
			}

			// What is kept in memory says as much.
			for _, u := range []*unstructured.Unstructured{a, b} {
				identity.Keep(u, resource.Trim, nil)
			}

			if got := identity.Same(a, b, nil); got != tc.want {
				t.Errorf("trimmed, the same: %t", got)
			}
		})
	}
}
