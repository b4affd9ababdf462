// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
)

func TestApproversAreServiceAccounts(t *testing.T) {
	for name, tc := range map[string]struct {
		given []string
		err   error
	}{
		"Named":     {given: []string{"flux-system:approver", "a:b"}},
		"None":      {},
		"User":      {given: []string{"berta"}, err: errNotAccount},
		"FullName":  {given: []string{"a:b", "system:serviceaccount:flux-system:approver"}, err: errNotAccount},
		"Slash":     {given: []string{"flux-system/approver"}, err: errNotAccount},
		"Anonymous": {given: []string{":approver"}, err: errNotAccount},
	} {
		t.Run(name, func(t *testing.T) {
			if err := (&cli{Approvers: tc.given, MaxWritesInFlight: 1}).Validate(); !errors.Is(err, tc.err) {
				t.Errorf("Validate: %v, want %v", err, tc.err)
			}
		})
	}
}

func TestSomethingCanBeWritten(t *testing.T) {
	if err := (&cli{}).Validate(); !errors.Is(err, errNoWrites) {
		t.Errorf("Validate: %v, want %v", err, errNoWrites)
	}
}
