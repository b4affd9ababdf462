// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func TestTheSubjectToReplaceLetsNobodyIn(t *testing.T) {
	m := materialOf(t, composing("{fromFieldPath: spec.size, toFieldPath: spec.forProvider.size}"), thing, instance)
	o := options()
	o.Subjects = nil

	_, policies := suggest(t, m, o)
	for _, p := range policies {
		for _, u := range []policy.User{hans(), anna(), machine(), {Name: "system:admin", Groups: []string{"system:masters"}}} {
			if policy.MayInitiate(p.Spec().Subjects, u) {
				t.Errorf("%s lets %s initiate", p.Name(), u.Name)
			}
		}

		if fields := p.Spec().Match.Fields; !strings.Contains(fmt.Sprint(p.Spec().Subjects), "REPLACE-ME") {
			t.Errorf("%v: nothing says that somebody is to be named", fields)
		}
	}
}
