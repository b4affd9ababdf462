// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package plugin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/patience"
	"github.com/kausality-io/kausality-crossplane/test/play"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// pendingList is what pending prints.
type pendingList struct {
	Kind    string `json:"kind"`
	Pending []struct {
		Digest     string                     `json:"digest"`
		Requesters []string                   `json:"requesters"`
		Changes    []v1alpha1.HeldChange      `json:"changes"`
		Approvals  []v1alpha1.PendingApproval `json:"approvals"`
	} `json:"pending"`
}

// pendingAt waits until one change of a field is pending at an object, and returns the digest of
// the list.
func pendingAt(ctx context.Context, t *testing.T, object, field, to, requester string) string {
	t.Helper()

	var digest string

	if err := scenario.Eventually(ctx, field+" pending at "+object, func(ctx context.Context) error {
		r := kubectl(ctx, t, "", "kausality", "pending", object, "-n", "default", "-o", "json")

		var got pendingList
		if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil || got.Kind != "PendingList" || r.Code != 0 {
			return fmt.Errorf("%w: %+v, %w", world.ErrOther, r, err)
		}

		if len(got.Pending) != 1 || len(got.Pending[0].Changes) != 1 || got.Pending[0].Changes[0].Field != field ||
			got.Pending[0].Changes[0].To != to || !slices.Equal(got.Pending[0].Requesters, []string{requester}) {
			return fmt.Errorf("%w: %s", world.ErrOther, r.Stdout)
		}

		digest = got.Pending[0].Digest

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	return digest
}

// nothingPending waits until nothing is pending at an object.
func nothingPending(ctx context.Context, t *testing.T, object string) {
	t.Helper()

	if err := scenario.Eventually(ctx, "nothing pending at "+object, func(ctx context.Context) error {
		r := kubectl(ctx, t, "", "kausality", "pending", object, "-n", "default")
		if r.Code != 0 || !strings.HasPrefix(r.Stdout, "Nothing is pending") {
			return fmt.Errorf("%w: %+v", world.ErrOther, r)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// waiting has kubectl wait for either condition of the PendingChange of an object, which it lacks, and hands
// over how each ends.
func waiting(ctx context.Context, t *testing.T, object string) map[string]<-chan play.Result {
	t.Helper()

	got := kubectl(ctx, t, "", "get", "pch", "-n", "default", "-o", `jsonpath={.items[?(@.spec.objectRef.name=="`+object+`")].metadata.name}`)
	name := "pch/" + got.Stdout
	out := map[string]<-chan play.Result{}

	for _, condition := range []string{v1alpha1.ConditionApproved, v1alpha1.ConditionApplied} {
		if r := kubectl(ctx, t, "", "wait", "--for=condition="+condition, name, "-n", "default", "--timeout=1s"); r.Code != 1 ||
			!strings.Contains(r.Stderr, "timed out waiting for the condition") {
			t.Errorf("wait --for=condition=%s of what waits: %+v", condition, r)
		}

		ended := make(chan play.Result, 1)
		out[condition] = ended

		go func() {
			ended <- kubectl(ctx, t, "", "wait", "--for=condition="+condition, name, "-n", "default", "--timeout="+patience.Limit.String())
		}()
	}

	return out
}

// TestWhatIsHeldIsApprovedAndPutBackByCommands of people who may, and by nobody who asked for it.
func TestWhatIsHeldIsApprovedAndPutBackByCommands(t *testing.T) {
	ctx := t.Context()

	const rack = "rack.notes.example.org/cellar"

	wait := "--timeout=" + patience.Limit.String()

	// 1. A rack, and a change that no policy allows.
	succeeds(ctx, t, "", "apply", "-f", "testdata/racks.yaml")
	succeeds(ctx, t, "", "wait", "--for=condition=Established", wait, "crd/racks.notes.example.org")
	succeeds(ctx, t, "", "wait", "--for=condition=Ready", wait, "allowancepolicy/racks", "enforcement/racks")
	succeeds(ctx, t, "hans", "apply", "-f", "testdata/rack.yaml")
	succeeds(ctx, t, "", "wait", "--for=condition=Kausality", wait, rack, "-n", "default")
	succeeds(ctx, t, "", "wait", "--for=jsonpath={.data.books}=novels", wait, "configmap", "-n", "default", "-l", "crossplane.io/composite=cellar")

	list := kubectl(ctx, t, "", "get", "configmap", "-n", "default", "-l", "crossplane.io/composite=cellar", "-o", "name")
	composed := strings.TrimSpace(list.Stdout)

	succeeds(ctx, t, "hans", "patch", rack, "-n", "default", "--type=merge", "-p", `{"spec": {"books": "poems"}}`)

	digest := pendingAt(ctx, t, rack, "data.books", "poems", "hans@example.com")
	if below := pendingAt(ctx, t, composed, "data.books", "poems", "hans@example.com"); below != digest {
		t.Errorf("of what is composed there is another list: %s, not %s", below, digest)
	}

	// 2. Who has not the right may not approve it.
	if r := kubectl(ctx, t, "anna", "kausality", "approve", rack, "-n", "default", "--yes", "--digest", digest); r.Code != 1 {
		t.Errorf("without the right: %+v", r)
	}

	succeeds(ctx, t, "", "apply", "-f", "testdata/approver.yaml")
	succeeds(ctx, t, "hans", "auth", "can-i", "approve", "configmaps", "--subresource=kausality", "-n", "default")
	succeeds(ctx, t, "anna", "auth", "can-i", "approve", "configmaps", "--subresource=kausality", "-n", "default")

	// 3. Nobody is asked where there is no terminal, who asked for it may not approve it, and nothing is
	// approved that was not looked at.
	other := "sha256:" + strings.Repeat("0", 64)

	for name, tc := range map[string]struct {
		user string
		args []string
		code int
		want string
	}{
		"NoTerminal":   {user: "anna", code: 2, want: "there is no terminal at which to ask"},
		"WhoAsked":     {user: "hans", args: []string{"--yes", "--digest", digest}, code: 1, want: "hans@example.com"},
		"AnotherList":  {user: "anna", args: []string{"--yes", "--digest", other}, code: 1, want: "what waits is not what --digest says"},
		"AnotherThing": {user: "anna", args: []string{"--yes", "--digest", digest, "--change", "nothing"}, code: 1, want: "no change that waits"},
	} {
		r := kubectl(ctx, t, tc.user, append([]string{"kausality", "approve", rack, "-n", "default"}, tc.args...)...)
		if r.Code != tc.code || !strings.Contains(r.Stderr, tc.want) {
			t.Errorf("%s: %+v", name, r)
		}
	}

	// 4. Approved by somebody else it is made, and its trace says by whom and why. Who waits for either is told.
	waits := waiting(ctx, t, "cellar")

	var r play.Result

	// That she has not the right is remembered for a moment.
	if err := scenario.Eventually(ctx, "an approval", func(ctx context.Context) error {
		r = kubectl(ctx, t, "anna", "kausality", "approve", composed, "-n", "default", "--yes", "--digest", digest, "--reason", "OPS-1", "--follow", wait)
		if strings.Contains(r.Stderr, "may not approve") {
			return r.Err()
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	if r.Code != 0 || !strings.Contains(r.Stdout, "  - novels\n  + poems\n") || !strings.Contains(r.Stdout, ": made\n") {
		t.Fatalf("approve: %+v", r)
	}

	for condition, ended := range waits {
		if got := <-ended; got.Code != 0 || !strings.HasSuffix(got.Stdout, " condition met\n") {
			t.Errorf("wait --for=condition=%s: %+v", condition, got)
		}
	}

	succeeds(ctx, t, "", "wait", "--for=jsonpath={.data.books}=poems", wait, composed, "-n", "default")
	nothingPending(ctx, t, rack)

	trace := kubectl(ctx, t, "", "kausality", "trace", composed, "-n", "default")
	for _, want := range []string{"approved by\nanna@example.com", "ChangeApproval ", "because: OPS-1", "requested by hans@example.com"} {
		if !strings.Contains(trace.Stdout, want) {
			t.Errorf("no %q in %s", want, trace.Stdout)
		}
	}

	// 5. What is rejected stays held, and who asked for it puts it back.
	succeeds(ctx, t, "hans", "patch", rack, "-n", "default", "--type=merge", "-p", `{"spec": {"wood": "pine"}}`)

	digest = pendingAt(ctx, t, rack, "data.wood", "pine", "hans@example.com")
	succeeds(ctx, t, "anna", "kausality", "reject", rack, "-n", "default", "--yes", "--digest", digest, "--reason", "oak lasts")
	succeeds(ctx, t, "hans", "kausality", "discard", rack, "-n", "default", "--yes")
	succeeds(ctx, t, "", "wait", "--for=jsonpath={.spec.wood}=oak", wait, rack, "-n", "default")
	nothingPending(ctx, t, rack)
}
