// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"encoding/json"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// TestAnEditIsUnseenOnlyWhereItWouldHaveLeftARecord checks what the function passes on: an XR without a record of
// an edit says nothing where the webhook records no edits of it.
func TestAnEditIsUnseenOnlyWhereItWouldHaveLeftARecord(t *testing.T) {
	const (
		initiated = "{kind: User, name: hans, mayInitiate: true}"
		carried   = "{kind: User, name: crossplane}"
		ignoring  = `{apiVersion: kausality.io/v1alpha1, kind: Enforcement, metadata: {name: e}, spec: {unnamedFields: Ignore,
			match: {resourceRules: [{apiGroups: [example.org], resources: [xdatabases]}]}}}`
	)

	for name, tc := range map[string]struct {
		reason, subject, enforcement string
		want                         bool
	}{
		"Recorded":    {reason: "The webhook records edits.", subject: initiated, want: true},
		"NoInitiator": {reason: "No policy allows anyone to edit the XR, so edits leave no record.", subject: carried},
		"Ignored":     {reason: "An Enforcement ignores fields without a policy, so edits leave no record.", subject: initiated, enforcement: ignoring},
	} {
		t.Run(name, func(t *testing.T) {
			give := func(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionRequest {
				req.RequiredResources["kausality.io/allowancepolicies"] = &fnv1.Resources{Items: []*fnv1.Resource{resourceOf(t,
					`{apiVersion: kausality.io/v1alpha1, kind: AllowancePolicy, metadata: {name: size}, spec: {match: {kind: XDatabase, fields: [spec.size]},
					subjects: [`+tc.subject+`], allow: [{kind: Object, mutations: [spec.forProvider.size]}]}}`)}}

				if tc.enforcement != "" {
					req.RequiredResources["kausality.io/enforcements"] = &fnv1.Resources{Items: []*fnv1.Resource{resourceOf(t, tc.enforcement)}}
				}

				return req
			}

			before := run(t, give(call(t, approvedXR, observedObject, sized("small", "postgres"), "")))

			message, err := json.Marshal(heldList(t, before))
			if err != nil {
				t.Fatal(err)
			}

			edited := strings.NewReplacer("generation: 12\n", "generation: 13\n", "size: large", "size: huge", firstState, string(message)).Replace(approvedXR)

			list := heldList(t, run(t, give(call(t, edited, observedObject, sized("huge", "postgres"), ""))))
			if len(list.Changes) != 1 || list.Unseen != tc.want {
				t.Errorf("%s\nunseen: %v, want %v, held %+v", tc.reason, list.Unseen, tc.want, list.Changes)
			}
		})
	}
}
