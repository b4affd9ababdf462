// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package parameter

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// TestWhatIsNoLongerGoodIsForgotten though nobody asks for it again: parameters may be large,
// and there may be some for each namespace.
func TestWhatIsNoLongerGoodIsForgotten(t *testing.T) {
	now := time.Unix(0, 0)
	r := NewReader(nil, nil, nil, func() time.Time { return now })
	ask := func(namespace int) {
		r.answer(policy.ParamQuery{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: strconv.Itoa(namespace), Name: "a"})
	}

	for i := range 10 {
		ask(i)
	}

	now = now.Add(paramsFor)
	ask(10)

	if len(r.known) != 1 {
		t.Errorf("%d answers are remembered, want the last", len(r.known))
	}

	for i := range 2 * maxQueries {
		ask(i)
	}

	if len(r.known) > maxQueries {
		t.Errorf("%d answers are remembered at once", len(r.known))
	}
}
