// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func TestAnInstallationSaysWhatElseDecides(t *testing.T) {
	const class = "spec.forProvider.instanceClass"

	more, err := identity.ParseFields([]string{"Instance.rds.aws.m.upbound.io=" + class + ",spec.forProvider.cluster.id"})
	if err != nil {
		t.Fatal(err)
	}

	want := []string{"Instance.rds.aws.upbound.io=spec.forProvider.cluster.id", "Instance.rds.aws.upbound.io=" + class}
	if diff := cmp.Diff(want, more.Texts()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	small, large := object(t, ofCloud), object(t, strings.Replace(ofCloud, "small", "large", 1))

	path, err := fieldpath.Parse(class)
	if err != nil {
		t.Fatal(err)
	}

	for name, tc := range map[string]struct {
		more identity.Fields
		want bool
	}{"Given": {more, true}, "Not given": {nil, false}} {
		t.Run(name, func(t *testing.T) {
			a, b := small.DeepCopy(), large.DeepCopy()

			if got := identity.Changes(a, b, path, tc.more); got != tc.want {
				t.Errorf("it changes: %t", got)
			}

			if got := identity.Same(a, b, tc.more); got == tc.want {
				t.Errorf("they are the same: %t", got)
			}

			for _, u := range []*unstructured.Unstructured{a, b} {
				identity.Keep(u, resource.Trim, tc.more)
			}

			if got := identity.Differs(identity.Of(a, tc.more), identity.Of(b, tc.more)); (len(got) > 0) != tc.want {
				t.Errorf("trimmed they differ in %v", got)
			}
		})
	}
}

func TestWhatDecidesIsNamedByKindAndField(t *testing.T) {
	for _, text := range []string{
		"", "Topic", "Topic.kafka.example.org", "Topic.kafka.example.org=", "Topic=spec.forProvider.id", "*.example.org=spec.forProvider.id",
		"Topic.kafka.example.org=id", "Topic.kafka.example.org=spec", "Topic.kafka.example.org=status.atProvider.id",
		"Topic.kafka.example.org=spec.ids[0]", "Topic.kafka.example.org=spec.a,,spec.b", "Topic.kafka.example.org=spec.a[",
	} {
		if got, err := identity.ParseFields([]string{"A.b=spec.c", text}); err == nil || !strings.Contains(err.Error(), `cannot read identity "`+text) {
			t.Errorf("%q is read as %v: %v", text, got, err)
		}
	}
}
