// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// approving decides as somebody who answers so; without answers there is no terminal. All that
// is said and shown is in one place, as at a terminal.
func approving(c *cluster, out io.Writer, opts approveOptions, answers string) *decider {
	if opts.decision == "" {
		opts.decision = v1alpha1.DecisionApprove
	}

	a := asker{out: out}
	if answers != "" {
		a.in = bufio.NewReader(strings.NewReader(answers))
	}

	return &decider{
		cluster: c, opts: opts, out: out, show: out, asker: a, now: pendingNow, poll: time.Millisecond, settled: 0,
	}
}

// made are the ChangeApprovals that were made, without what all have.
func made(t *testing.T, client *dynamicfake.FakeDynamicClient) string {
	t.Helper()

	var out []string

	for _, a := range client.Actions() {
		create, ok := a.(clienttesting.CreateAction)
		if !ok {
			continue
		}

		u, _ := create.GetObject().(*unstructured.Unstructured)

		raw, err := yaml.Marshal(u.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}

		out = append(out, u.GetKind()+" "+u.GetNamespace()+"/"+u.GetGenerateName()+"\n"+string(raw))
	}

	return strings.Join(out, "\n")
}

const approvedDiff = `Claim team/db: 3 changes, requested by hans@example.com, unknown
waits since 2026-11-22T09:00:00Z (3h)
DESTROYS Instance old is deleted

Instance old
  delete  (the Composition, revision db-5; the provider does: Delete; --change dddd00000000)
  - (the whole object)

Instance db-1
  spec.forProvider.rules[2].port  (an edit by hans@example.com; the provider does: Update; --change aaaa00000000)
  - 80
  + 443
  spec.forProvider.password  (the pipeline: a function, or what it reads; --change aaaa11111111)
  - (masked)
  + (masked)
  its value is hidden: any value of this field is let through, once

1 more change did not fit into the list, and can be decided about once these are made.

`

const portDiff = `Claim team/db: 1 change, requested by hans@example.com, unknown
waits since 2026-11-22T09:00:00Z (3h)

Instance db-1
  spec.forProvider.rules[2].port  (an edit by hans@example.com; the provider does: Update; --change aaaa00000000)
  - 80
  + 443

1 more change did not fit into the list, and can be decided about once these are made.

`

func TestChangesAreDecidedAbout(t *testing.T) {
	t.Parallel()

	const (
		destroysText = "Approve 3 changes of Claim/db? It destroys: Instance old is deleted. Type db to confirm: "
		portSpec     = `ChangeApproval team/claim-db-HASH-
changes:
- sha256:aaaa00000000bbbb
decision: DECISION
digest: sha256:1157
pendingChange: claim-db-HASH
`
	)

	all := strings.Replace(strings.Replace(portSpec, "DECISION", "Approve", 1), "changes:\n", "changes:\n- sha256:dddd00000000aaaa\n", 1)
	all = strings.Replace(all, "bbbb\n", "bbbb\n- sha256:aaaa11111111cccc\n", 1)

	for name, tc := range map[string]struct {
		opts   approveOptions
		args   []string
		answer string
		want   string
		made   string
		err    error
		code   int
	}{
		"All": {
			args: []string{"claim/db"}, answer: "db\n", opts: approveOptions{changes: []string{"dddd", "aaaa0", "aaaa1"}},
			want: approvedDiff + destroysText + "ChangeApproval team/claim-db-HASH-1 approves 3 changes of Claim/db; 2 people have to approve\n",
			made: all,
		},
		"WhatDestroysTakesTheName": {
			args: []string{"claim/db"}, answer: "y\n", opts: approveOptions{changes: []string{"dddd", "aaaa0", "aaaa1"}},
			want: approvedDiff + destroysText, err: errDeclined, code: exitError,
		},
		"TheRestIsNotMeantByItself": {
			args: []string{"claim/db"}, answer: "db\n", err: errSomeLeft, code: exitError,
			want: strings.Replace(approvedDiff, "1 more", `Left out: Instance of composed resource replica spec.forProvider.stamp: (unset) -> 1763803800: `+
				`the desired value differs each time. Make it stable in the Composition

1 more`, 1),
		},
		"OfWhatIsBelow": {
			args: []string{"instance", "db-1"}, answer: "y\n", opts: approveOptions{changes: []string{"aaaa0"}},
			want: portDiff + "Approve 1 change of Claim/db? [y/N] ChangeApproval team/claim-db-HASH-1 approves 1 change of Claim/db; 2 people have to approve\n",
			made: strings.Replace(portSpec, "DECISION", "Approve", 1),
		},
		"OneObjectOnce": {
			args: []string{"claim/db", "database/db-x", "instance/db-1"}, answer: "y\n", opts: approveOptions{changes: []string{"sha256:aaaa0"}},
			want: portDiff + "Approve 1 change of Claim/db? [y/N] ChangeApproval team/claim-db-HASH-1 approves 1 change of Claim/db; 2 people have to approve\n",
			made: strings.Replace(portSpec, "DECISION", "Approve", 1),
		},
		"SelectedByLabels": {
			args: []string{"claims"}, answer: "yes\n", opts: approveOptions{changes: []string{"aaaa0"}, selector: "tier=gold"},
			want: portDiff + "Approve 1 change of Claim/db? [y/N] ChangeApproval team/claim-db-HASH-1 approves 1 change of Claim/db; 2 people have to approve\n",
			made: strings.Replace(portSpec, "DECISION", "Approve", 1),
		},
		"NoneHasTheLabels": {
			args: []string{"claims"}, opts: approveOptions{selector: "tier=tin"}, want: "No object of claims has such labels.\n",
		},
		"NotConfirmed": {
			args: []string{"claim/db"}, answer: "n\n", opts: approveOptions{changes: []string{"aaaa0"}},
			want: portDiff + "Approve 1 change of Claim/db? [y/N] ", err: errDeclined, code: exitError,
		},
		"TheEndOfTheInputConfirmsNothing": {
			args: []string{"claim/db"}, answer: " ", opts: approveOptions{changes: []string{"aaaa0"}},
			want: portDiff + "Approve 1 change of Claim/db? [y/N] ", err: errDeclined, code: exitError,
		},
		"NoTerminal": {
			args: []string{"claim/db"}, opts: approveOptions{changes: []string{"aaaa0"}}, want: portDiff, err: errNoTerminal, code: exitUsage,
		},
		"AProgram": {
			args: []string{"claim/db"}, opts: approveOptions{
				changes: []string{"aaaa0"}, yes: true, digests: []string{"sha256:1157"}, reason: "OPS-1", validFor: time.Hour,
			},
			want: portDiff + "ChangeApproval team/claim-db-HASH-1 approves 1 change of Claim/db; 2 people have to approve\n",
			made: strings.Replace(portSpec, "DECISION", "Approve", 1) + "reason: OPS-1\nvalidFor: 1h0m0s\n",
		},
		"AProgramThatSawAnotherList": {
			args: []string{"claim/db"}, opts: approveOptions{yes: true, digests: []string{"sha256:1156"}}, err: errOtherDigest, code: exitError,
		},
		"AProgramThatSawWhatIsPendingNoMore": {
			args: []string{"claim/quiet"}, opts: approveOptions{yes: true, digests: []string{"sha256:1157"}}, err: errOtherDigest, code: exitError,
		},
		"NothingIsPending": {args: []string{"claim/quiet"}, want: "Nothing is pending at claim/quiet.\n"},
		"NoSuchChange": {
			args: []string{"claim/db"}, opts: approveOptions{changes: []string{"ffff"}}, err: errNoChange, code: exitError,
		},
		"SeveralSuchChanges": {
			args: []string{"claim/db"}, opts: approveOptions{changes: []string{"aaaa"}}, err: errSeveral, code: exitError,
		},
		"Unstable": {
			args: []string{"claim/db"}, opts: approveOptions{changes: []string{"eeee"}}, err: errNoneLeft, code: exitError,
			want: `Claim team/db: 0 changes, requested by hans@example.com, unknown
waits since 2026-11-22T09:00:00Z (3h)

Left out: Instance of composed resource replica spec.forProvider.stamp: (unset) -> 1763803800: ` +
				`the desired value differs each time. Make it stable in the Composition

1 more change did not fit into the list, and can be decided about once these are made.

`,
		},
		"Rejected": {
			args: []string{"claim/db"}, answer: "y\nOPS-9\n",
			opts: approveOptions{decision: v1alpha1.DecisionReject, changes: []string{"aaaa0"}},
			want: portDiff + "Reject 1 change of Claim/db? [y/N] Why? ChangeApproval team/claim-db-HASH-1 rejects 1 change of Claim/db\n",
			made: strings.Replace(portSpec, "DECISION", "Reject", 1) + "reason: OPS-9\n",
		},
		"RejectedForAReason": {
			args: []string{"claim/db"}, answer: "y\n",
			opts: approveOptions{decision: v1alpha1.DecisionReject, changes: []string{"aaaa0"}, reason: "OPS-8"},
			want: portDiff + "Reject 1 change of Claim/db? [y/N] ChangeApproval team/claim-db-HASH-1 rejects 1 change of Claim/db\n",
			made: strings.Replace(portSpec, "DECISION", "Reject", 1) + "reason: OPS-8\n",
		},
		"LetThroughAlone": {
			args: []string{"claim/db"}, answer: "db\n",
			opts: approveOptions{decision: v1alpha1.DecisionBreakGlass, changes: []string{"aaaa0"}, reason: "INC-7"},
			want: portDiff + "Break the glass for 1 change of Claim/db? " + alone + " Type db to confirm: " +
				"ChangeApproval team/claim-db-HASH-1 breaks the glass for 1 change of Claim/db\n",
			made: strings.Replace(portSpec, "DECISION", "BreakGlass", 1) + "reason: INC-7\n",
		},
		"NotLetThroughAloneByYes": {
			args: []string{"claim/db"}, answer: "y\n",
			opts: approveOptions{decision: v1alpha1.DecisionBreakGlass, changes: []string{"aaaa0"}, reason: "INC-7"},
			want: portDiff + "Break the glass for 1 change of Claim/db? " + alone + " Type db to confirm: ", err: errDeclined, code: exitError,
		},
		"ADryRun": {
			args: []string{"claim/db"}, answer: "y\n",
			opts: approveOptions{changes: []string{"aaaa0"}, clusterOptions: clusterOptions{dry: dryRun{mode: dryClient}}},
			want: portDiff + "Approve 1 change of Claim/db? [y/N] ChangeApproval would approve 1 change of Claim/db; 2 people have to approve; nothing was changed\n",
		},
		"ANameWithASelector": {args: []string{"claim/db"}, opts: approveOptions{selector: "a=b"}, err: errKindAlone, code: exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, client := fakeCluster(parse(t, pendingClaim), parse(t, pendingXR), parse(t, pendingInstance), parse(t, pendingDB),
				parse(t, "{apiVersion: shop.example.org/v1, kind: Claim, metadata: {name: quiet, namespace: team}}"))
			c.dry = tc.opts.dry

			var out bytes.Buffer

			err := approving(c, &out, tc.opts, tc.answer).decide(t.Context(), tc.args)
			if !errors.Is(err, tc.err) || exitCode(err) != tc.code {
				t.Errorf("%v (exit code %d), want %v (%d)", err, exitCode(err), tc.err, tc.code)
			}

			hash := strings.NewReplacer("HASH", pendingHash)

			if diff := cmp.Diff(hash.Replace(tc.want), out.String()); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}

			if diff := cmp.Diff(hash.Replace(tc.made), made(t, client)); diff != "" {
				t.Errorf("made: -want, +got:\n%s", diff)
			}
		})
	}
}

// TestARefusalOfTheAPIServerIsShownAsItIs for it says who may.
func TestARefusalOfTheAPIServerIsShownAsItIs(t *testing.T) {
	t.Parallel()

	c, client := fakeCluster(parse(t, pendingClaim), parse(t, pendingDB))
	client.PrependReactor("create", "changeapprovals", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "changeapprovals"}, "x", errForbidden)
	})

	err := approving(c, io.Discard, approveOptions{changes: []string{"aaaa0"}}, "y\n").decide(t.Context(), []string{"claim/db"})
	if want := `cannot approve changes of Claim/db: changeapprovals "x" is forbidden: forbidden`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestOnATerminalADiffHasColours and nowhere else.
func TestOnATerminalADiffHasColours(t *testing.T) {
	t.Parallel()

	p, err := pendingOf(parse(t, pendingDB))
	if err != nil {
		t.Fatal(err)
	}

	c, err := choose(p, []string{"aaaa0", "dddd"}, nil, v1alpha1.DecisionApprove)
	if err != nil {
		t.Fatal(err)
	}

	got := c.diff(paint{on: true}, pendingNow())
	for _, want := range []string{
		"\x1b[1;31mDESTROYS Instance old is deleted\x1b[0m\n", "\x1b[31m  - 80\x1b[0m\n\x1b[32m  + 443\x1b[0m\n", "\x1b[1mInstance db-1\x1b[0m\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}

	if paintOf(&bytes.Buffer{}).on || strings.Contains(c.diff(paint{}, pendingNow()), "\x1b") {
		t.Error("a pipe gets colours")
	}
}

// TestWhatIsApprovedAlreadyIsNotAskedAbout and can be rejected.
func TestWhatIsApprovedAlreadyIsNotAskedAbout(t *testing.T) {
	t.Parallel()

	text := strings.Replace(pendingDB, "state: Waiting", "state: Granted", 1)

	for decision, want := range map[v1alpha1.ApprovalDecision]int{v1alpha1.DecisionApprove: 2, v1alpha1.DecisionReject: 3} {
		p, err := pendingOf(parse(t, text))
		if err != nil {
			t.Fatal(err)
		}

		c, err := choose(p, nil, nil, decision)
		if err != nil || len(c.chosen) != want || len(c.granted) != 3-want {
			t.Errorf("%s: %d chosen, %d granted, %v", decision, len(c.chosen), len(c.granted), err)
		}
	}
}

// TestAValueThatIsCutIsSaidToBe for who approves it approves what they do not see.
func TestAValueThatIsCutIsSaidToBe(t *testing.T) {
	t.Parallel()

	for value, cut := range map[string]bool{"short...": false, strings.Repeat("x", 125) + "...": true, strings.Repeat("x", 128): false, strings.Repeat("x", 61) + "...": true} {
		var out strings.Builder

		writeDiff(&out, paint{}, v1alpha1.HeldChange{Field: "spec.x", To: value})

		if strings.Contains(out.String(), "is cut here") != cut {
			t.Errorf("%s: %s", value, out.String())
		}
	}
}
