// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/message"
)

const (
	thirty  = "a-name-of-thirty-characters-xx"
	initial = "{kind: XDatabase, apiVersion: platform.example.org/v1, metadata: {name: " + thirty + ", namespace: " + thirty + ", generation: 1234"
)

// TestAConditionIsShortAndNamesTheCommand whatever is held and whatever else there is to say, and names what it can.
func TestAConditionIsShortAndNamesTheCommand(t *testing.T) {
	t.Parallel()

	settled := object(t, initial+", annotations: {kausality.io/initialized: '{\"v\":1}'}}}")
	long := strings.Repeat("ä long reason, ", 30)

	for n := range 8 {
		for _, why := range [][]string{nil, {"no policy allows it"}, {long}, {"from anna's edit of spec.size", long, long}} {
			for _, more := range [][]string{nil, {"short"}, {long, long}} {
				held := make([]condition.Held, n)
				for i := range held {
					held[i] = condition.Held{Resource: fmt.Sprintf("Instance %s%d", thirty, i), Why: why, OfEdit: len(why) > 0 && strings.HasPrefix(why[0], "from "), Change: v1alpha1.HeldChange{
						Field: "spec.forProvider.parameters[3].value", From: strings.Repeat("x", 128), To: "small", Digest: "sha256:1", Missing: long,
					}}
				}

				f := condition.Findings{Ready: true, Composed: 1, Held: held, Problems: more, Delegated: more, Now: time.Unix(0, 0)}
				checkMessage(t, condition.Summarize(settled, f).Message, n, n > 0)

				f.Pending = []string{"Instance " + thirty + "0 is being changed"}

				got := condition.Summarize(settled, f).Message
				checkMessage(t, got, n, false)

				if strings.Contains(got, "Instance") {
					t.Errorf("in progress, it names a child: %q", got)
				}

				f.Unanswered = long
				checkMessage(t, condition.Summarize(settled, f).Message, 0, false)

				for _, h := range held {
					checkMessage(t, h.Event(settled), 0, true)
				}
			}
		}
	}
}

func checkMessage(t *testing.T, got string, held int, names bool) {
	t.Helper()

	if n := utf8.RuneCountInString(got); n > message.Most {
		t.Errorf("%d characters: %q", n, got)
	}

	if held > 0 && (!strings.Contains(got, " held") ||
		!strings.HasSuffix(got, " kubectl kausality pending xdatabase.platform.example.org/"+thirty+" -n "+thirty)) {
		t.Errorf("without number or command: %q", got)
	}

	if names && held < 2 && !strings.Contains(got, "parameters[3].value of ") { // Of two with such names there is no room for either.
		t.Errorf("it names nothing: %q", got)
	}
}

// TestAConditionDropsTheLeast first: reasons, then values, then names.
func TestAConditionDropsTheLeast(t *testing.T) {
	t.Parallel()

	xr := object(t, "{kind: Bucket, apiVersion: example.org/v1, metadata: {name: logs, namespace: shop, generation: 4, annotations: {kausality.io/initialized: '{\"v\":1}'}}}")
	held := func(field, name string, why ...string) condition.Held {
		return condition.Held{Resource: "Object " + name, Why: why, OfEdit: len(why) > 0 && strings.HasPrefix(why[0], "from "), Change: v1alpha1.HeldChange{
			Field: field, From: "red", To: "blue", Missing: "m", Digest: "sha256:1",
		}}
	}

	const command = ". kubectl kausality pending bucket.example.org/logs -n shop"

	for name, tc := range map[string]struct {
		held []condition.Held
		want string
	}{
		"All": {
			[]condition.Held{held("spec.forProvider.manifest.data.color", "logs-x7k2p", "from anna's edit of spec.color", "no policy allows it")},
			"1 change held: data.color of Object logs-x7k2p (red → blue), from anna's edit of spec.color; no policy allows it",
		},
		"FirstReason": {
			[]condition.Held{held("spec.color", "logs-x7k2p", "no policy allows it", strings.Repeat("x", 90))},
			"1 change held: spec.color of Object logs-x7k2p (red → blue); no policy allows it",
		},
		"Two": {
			[]condition.Held{held("spec.color", "a", "no policy allows it"), held("spec.size", "b", "no policy allows it")},
			"2 changes held: spec.color of Object a (red → blue); spec.size of Object b (red → blue)",
		},
		"Names": {
			[]condition.Held{held("spec.color", "a"), held("spec.size", "b"), held("spec.zone", "c"), held("spec.region", "d"), held("spec.name", "e")},
			"5 changes held: spec.color of Object a; spec.size of Object b; spec.zone of Object c; and 2 more",
		},
	} {
		got := condition.Summarize(xr, condition.Findings{Ready: true, Composed: 1, Held: tc.held}).Message
		if want := "generation 4: settled, " + tc.want + command; got != want {
			t.Errorf("%s:\n%q, want\n%q", name, got, want)
		}
	}
}
