// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"strings"
	"testing"
)

func TestTheInputSaysWhichFieldNamesAnotherExternalObject(t *testing.T) {
	const field = "Object.kubernetes.crossplane.io=spec.forProvider.size"

	// Whoever made the size large is allowed to have that applied.
	for input, held := range map[string]bool{
		"": false, "identity: [" + field + "]": true, "identity: [Topic.kafka.example.org=spec.forProvider.size]": false,
	} {
		rsp := run(t, call(t, steadyXR, observedObject, sized("large", "postgres"), input))

		changes := heldList(t, rsp).Changes
		if got := len(changes) == 1 && changes[0].Destroys; got != held || len(changes) > 0 != held {
			t.Errorf("%q: held is %+v", input, changes)
		}
	}

	rsp := run(t, call(t, steadyXR, observedObject, sized("large", "postgres"), "identity: [Object]"))
	if got := rsp.GetResults()[0].GetMessage(); !strings.Contains(got, `identity: cannot read identity "Object": it has to be KIND.GROUP=FIELD`) {
		t.Errorf("a kind without a field: %q", got)
	}
}
