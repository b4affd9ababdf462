// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/internal/suggestion"
)

// logged makes decisions of a log about one XR, of generation 4 at the start.
type logged struct {
	t          *testing.T
	log        suggestion.Log
	generation int64
	size       string
	labels     map[string]any
	held       bool
	settled    int64
	minutes    int
	lines      int
}

func logging(t *testing.T) *logged {
	t.Helper()

	return &logged{t: t, generation: 4, size: "small", settled: 4, labels: map[string]any{}}
}

func (l *logged) xr() *unstructured.Unstructured {
	state := v1alpha1.State{Progress: v1alpha1.Progress{Phase: v1alpha1.PhaseSettled, Settled: v1alpha1.Settled{Generation: l.settled}}}
	if l.held {
		ref := v1alpha1.ObjectReference{APIVersion: "rds.example.org/v1", Kind: "Instance", Name: "db"}
		state.Changes = []v1alpha1.HeldChange{{Ref: ref, Field: "spec.forProvider.class", From: "a", To: "b", Missing: "no policy"}}
	}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Thing",
		"metadata": map[string]any{"name": "one", "namespace": "shop", "uid": "u", "generation": l.generation, "labels": maps.Clone(l.labels)},
		"spec":     map[string]any{"size": l.size, "crossplane": map[string]any{"compositionRef": map[string]any{"name": "things"}}},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": v1alpha1.ConditionState, "status": "True", "message": resource.FormatState(state)},
		}},
	}}
}

func (l *logged) add(d *decisionlog.Decision) {
	l.lines++
	l.minutes++
	d.Time = time.Date(2026, 1, 1, 0, l.minutes, 0, 0, time.UTC)
	d.Settings.Crossplane = crossplane
	l.log.Add(fmt.Sprintf("a.log:%d", l.lines), d)
}

// edit has a user change the XR. Size is its size, or as it was where that is empty.
func (l *logged) edit(user, size string, do decision.Do, held ...string) {
	old := l.xr().Object
	before := *l

	if size != "" {
		l.size = size
	}

	obj := l.xr().Object
	out := decisionlog.Outcome{Do: do}

	for _, h := range held {
		out.Held = append(out.Held, v1alpha1.HeldChange{Field: h})
	}

	l.add(&decisionlog.Decision{
		By: decisionlog.By{Part: decisionlog.PartMutate, UID: strconv.Itoa(l.lines)}, Operation: request.OperationUpdate,
		User: decisionlog.User{Name: user}, Old: old, New: obj, Outcome: out,
	})

	l.generation++

	if do == decision.Deny || len(held) > 0 {
		l.size, l.generation = before.size, before.generation
	}
}

// refuse has the webhook that refuses do so with what was let through last.
func (l *logged) refuse(size string) {
	old := l.xr().Object
	obj := l.xr().Object
	obj["spec"] = map[string]any{"size": size, "crossplane": map[string]any{}}

	l.add(&decisionlog.Decision{
		By: decisionlog.By{Part: decisionlog.PartEnforce, UID: strconv.Itoa(l.lines - 1)}, Operation: request.OperationUpdate,
		User: decisionlog.User{Name: "anna"}, Old: old, New: obj, Outcome: decisionlog.Outcome{Do: decision.Deny},
	})
}

// want has the function want a class, and a password, of what the XR composes.
func (l *logged) want(class string, change ...func(*decisionlog.Decision)) {
	child := func(class string) decisionlog.Object {
		return decisionlog.Object{
			"apiVersion": "rds.example.org/v1", "kind": "Instance", "metadata": map[string]any{"name": "db"},
			"spec": map[string]any{"forProvider": map[string]any{"class": class, "password": "hunter2-" + class}},
		}
	}

	d := &decisionlog.Decision{
		By:   decisionlog.By{Part: decisionlog.PartFunction, Composite: &decisionlog.Composite{Resource: "db"}},
		User: decisionlog.User{Name: crossplane}, Operation: request.OperationUpdate, Old: child("a"), New: child(class), Parent: l.xr().Object,
		Outcome: decisionlog.Outcome{Findings: []decisionlog.Finding{
			{Field: "spec.forProvider.class", Verdict: finding.Unallowed}, {Field: "spec.forProvider.tags", Verdict: finding.Allowed},
		}},
	}

	for _, c := range change {
		c(d)
	}

	l.add(d)
}

func TestWhatALogShowsIsObservedOnce(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		play   func(*logged)
		// want are LOG:LINE USER: FIELDS -> FIELD.
		want string
	}{
		"ByTheWebhook": {
			"What the webhook let through at that generation of the XR led to it.",
			func(l *logged) { l.edit("anna", "large", decision.Allow); l.want("b") }, "a.log:2 anna: spec.size -> spec.forProvider.class",
		},
		"Again": {
			"What is wanted until it is let through was wanted once.",
			func(l *logged) {
				l.edit("anna", "large", decision.Allow)
				l.want("b")
				l.settled = 5
				l.held = true
				l.want("b")
				l.labels["color"] = "red"
				l.edit("hans", "other", decision.Allow)
				l.want("b")
			}, "a.log:2 anna: spec.size -> spec.forProvider.class",
		},
		"Another": {
			"Another value is another wish.",
			func(l *logged) {
				l.edit("anna", "large", decision.Allow)
				l.want("b")
				l.edit("hans", "small", decision.Allow)
				l.want("c")
			}, "a.log:2 anna: spec.size -> spec.forProvider.class\na.log:4 hans: spec.size -> spec.forProvider.class",
		},
		"ByTheFunction": {
			"Without the webhook's log it is what the function finds changed.",
			func(l *logged) {
				l.want("b")
				l.size, l.generation = "large", 5
				l.want("c")
			}, "a.log:1 : nothing -> spec.forProvider.class\na.log:2 : spec.size -> spec.forProvider.class",
		},
		"Refused": {
			"What was refused led to nothing.",
			func(l *logged) {
				l.edit("anna", "large", decision.Allow)
				l.generation--
				l.refuse("large")
				l.generation++
				l.want("b")
			}, "a.log:3 : nothing -> spec.forProvider.class",
		},
		"Denied": {
			"Nor did what was denied at once.",
			func(l *logged) { l.edit("anna", "large", decision.Deny); l.want("b") }, "a.log:2 : nothing -> spec.forProvider.class",
		},
		"PutBack": {
			"Nor did what was put back.",
			func(l *logged) { l.edit("anna", "large", decision.Hold, "spec.size"); l.want("b") }, "a.log:2 : nothing -> spec.forProvider.class",
		},
		"HeldBefore": {
			"What was held before the log begins follows from something that is not in it.",
			func(l *logged) {
				l.held = true
				l.edit("anna", "large", decision.Allow)
				l.want("b")
			}, "a.log:2 : nothing -> spec.forProvider.class",
		},
		"Settled": {
			"What is wanted of an XR that had settled follows from nobody's change.",
			func(l *logged) {
				l.edit("anna", "large", decision.Allow)
				l.settled = 5
				l.want("b")
			}, "a.log:2 : nothing -> spec.forProvider.class",
		},
		"Labels": {
			"Labels are changed within a generation.",
			func(l *logged) {
				l.want("b")
				l.labels["color"] = "red"
				l.want("c")
				l.labels["color"] = "blue" // This is later.
			}, "a.log:1 : nothing -> spec.forProvider.class\na.log:2 : metadata.labels.color -> spec.forProvider.class",
		},
		"DryRun": {
			"A dry run changes nothing.",
			func(l *logged) {
				l.edit("anna", "large", decision.Allow)
				l.want("b", func(d *decisionlog.Decision) { d.DryRun = true })
			}, "",
		},
		"ByHand": {
			"What a person wants of what is composed follows from nothing.",
			func(l *logged) {
				l.edit("anna", "large", decision.Allow)
				l.want("b", func(d *decisionlog.Decision) {
					d.By = decisionlog.By{Part: decisionlog.PartMutate}
					d.User.Name = "anna"
				})
			}, "",
		},
		"WithoutAFunction": {
			"What Crossplane applies is seen by the webhook, and once.",
			func(l *logged) {
				l.edit("anna", "large", decision.Allow)
				l.want("b", func(d *decisionlog.Decision) { d.By = decisionlog.By{Part: decisionlog.PartMutate} })
				l.want("b", func(d *decisionlog.Decision) { d.By = decisionlog.By{Part: decisionlog.PartEnforce, Stored: true} })
			}, "a.log:2 anna: spec.size -> spec.forProvider.class",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			l := logging(t)
			tc.play(l)

			seen := l.log.Observed()
			got := make([]string, 0, len(seen))

			for _, o := range seen {
				from := strings.Join(o.ParentFields, ", ")
				if from == "" {
					from = "nothing"
				}

				got = append(got, fmt.Sprintf("%s %s: %s -> %s", o.At, o.User, from, o.ChildField))

				if o.Composition != "things" || o.ParentName != "shop/one" || o.Child.Kind != "Instance" {
					t.Errorf("%+v", o)
				}

				if strings.Contains(fmt.Sprintf("%+v", o), "hunter2") {
					t.Errorf("it quotes a value: %+v", o)
				}
			}

			if diff := cmp.Diff(tc.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
