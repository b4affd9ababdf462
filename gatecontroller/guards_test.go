// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func TestOurAnnotationsStayAsTheyAreWhereNoWebhookIsAsked(t *testing.T) {
	guard := (&configuration{}).notesGuard(nil)

	e, err := policy.CompileExpression(guard.Spec.Validations[0].Expression)
	if err != nil {
		t.Fatal(err)
	}

	const (
		none   = "{metadata: {name: a}}"
		gated  = "{metadata: {annotations: {kausality.io/management-policies: '- \"*\"', other: a}}}"
		opened = "{metadata: {annotations: {kausality.io/management-policies: '- \"*\"', kausality.io/allowances: '- {}', other: a}}}"
	)

	for _, tc := range []struct {
		reason, old, new string
		want             bool
	}{
		{reason: "What stays the same may be written.", old: gated, new: gated, want: true},
		{reason: "Other annotations are not ours.", old: gated, new: "{metadata: {annotations: {kausality.io/management-policies: '- \"*\"'}}}", want: true},
		{reason: "Nothing may be added.", old: gated, new: opened},
		{reason: "Nothing may be taken away.", old: opened, new: gated},
		{reason: "Not even all of it.", old: gated, new: none},
		{reason: "Nor may all of it be made up.", old: none, new: gated},
		{reason: "Without any there is nothing to keep.", old: none, new: none, want: true},
	} {
		got, _, err := e.Eval(policy.Input{Object: parse(t, tc.new).Object, OldObject: parse(t, tc.old).Object})
		if err != nil || got != tc.want {
			t.Errorf("%s\n%s -> %s: %v, %v", tc.reason, tc.old, tc.new, got, err)
		}
	}
}
