// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAKindOfAnOlderRuntimeIsCreatedWithoutLateInitialize(t *testing.T) {
	const fresh = "{apiVersion: example.org/v1alpha1, kind: XDatabase, metadata: {name: db, generation: 1}, spec: {size: small, resourceRefs: []}}"

	for input, want := range map[string][]any{
		"": {"Observe", "LateInitialize", "Create"},
		"withoutLateInitialize: [Object.kubernetes.crossplane.io]":        {"Observe", "Create"},
		"withoutLateInitialize: ['*.example.org', '*']":                   {"Observe", "Create"},
		"withoutLateInitialize: [Bucket.s3.example.org, '*.example.org']": {"Observe", "LateInitialize", "Create"},
	} {
		rsp := run(t, call(t, fresh, "", sized("small", "postgres"), input))

		spec := rsp.GetDesired().GetResources()["database"].GetResource().GetFields()["spec"].GetStructValue()
		if diff := cmp.Diff(want, spec.GetFields()["managementPolicies"].GetListValue().AsSlice()); diff != "" {
			t.Errorf("%q: -want, +got:\n%s", input, diff)
		}
	}

	rsp := run(t, call(t, fresh, "", sized("small", "postgres"), "withoutLateInitialize: [Object]"))
	if got := rsp.GetResults()[0].GetMessage(); !strings.Contains(got, `withoutLateInitialize: cannot read kind "Object": it has to be KIND.GROUP, *.GROUP or *`) {
		t.Errorf("a kind without a group: %q", got)
	}
}
