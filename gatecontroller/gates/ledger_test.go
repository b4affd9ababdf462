// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestGatesAreCountedByWhatTheirRecordsSay(t *testing.T) {
	var (
		gk    = schema.GroupKind{Group: "g", Kind: "K"}
		key   = types.NamespacedName{Namespace: "ns", Name: "db"}
		start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	)

	plan := func(move gate.Move, state v1alpha1.GateState, wait managed.Wait, overdue bool) *gate.Plan {
		return &gate.Plan{Move: move, Record: v1alpha1.GateRecord{State: state, Since: metav1.NewTime(start)}, Wait: wait, Overdue: overdue}
	}
	record := func(state v1alpha1.GateState) *v1alpha1.GateRecord {
		return &v1alpha1.GateRecord{State: state, Since: metav1.NewTime(start)}
	}

	cases := map[string]struct {
		reason string
		do     func(l *Ledger) []news
		want   []string
		news   []news
	}{
		"Cycle": {
			reason: "An opening is timed to less than a second by who made it; what it waits for counts when it begins.",
			do: func(l *Ledger) []news {
				l.moved(gk, key, record(v1alpha1.GateClosed), plan(gate.OpenUp, v1alpha1.GateOpen, "", false), start.Add(100*time.Millisecond))

				for range 3 {
					l.stays(gk, key, plan(gate.Stay, v1alpha1.GateOpen, managed.WaitSynced, false))
				}

				l.stays(gk, key, plan(gate.Stay, v1alpha1.GateOpen, managed.WaitExternal, false))
				l.moved(gk, key, record(v1alpha1.GateOpen), plan(gate.CloseUp, v1alpha1.GateClosed, "", false), start.Add(350*time.Millisecond))

				return nil
			},
			want: []string{
				"gate_moves_total{g,K,Close} 1", "gate_moves_total{g,K,Open} 1", "gate_open_seconds{g,K} 1, 0.25s",
				"gate_waits_total{g,K,External} 1", "gate_waits_total{g,K,Synced} 1",
			},
		},
		"Restart": {
			reason: "After a restart the record says since when.",
			do: func(l *Ledger) []news {
				l.stays(gk, key, plan(gate.Stay, v1alpha1.GateOpen, managed.WaitSettle, false))
				l.moved(gk, key, record(v1alpha1.GateOpen), plan(gate.CloseUp, v1alpha1.GateClosed, "", false), start.Add(time.Hour))

				return nil
			},
			want: []string{"gate_moves_total{g,K,Close} 1", "gate_open_seconds{g,K} 1, 3600s", "gate_waits_total{g,K,Settle} 1"},
		},
		"Open": {
			reason: "Open gates count once, however often they are looked at or widened.",
			do: func(l *Ledger) []news {
				l.moved(gk, key, nil, plan(gate.TakeOver, v1alpha1.GateOpen, "", false), start)
				l.moved(gk, key, record(v1alpha1.GateOpen), plan(gate.OpenUp, v1alpha1.GateOpen, "", false), start)
				l.stays(gk, key, plan(gate.Stay, v1alpha1.GateOpen, managed.WaitReady, false))

				return nil
			},
			want: []string{
				"gate_moves_total{g,K,TakeOver} 1", "gate_moves_total{g,K,Widen} 1", "gate_waits_total{g,K,Ready} 1", "gates_open{g,K} 1",
			},
		},
		"Overdue": {
			reason: "What is overdue is told of once.",
			do: func(l *Ledger) []news {
				out := make([]news, 0, 3)
				for range 3 {
					out = append(out, l.stays(gk, key, plan(gate.Stay, v1alpha1.GateOpen, managed.WaitSynced, true)))
				}

				return out
			},
			want: []string{"gate_timeouts_total{g,K} 1", "gate_waits_total{g,K,Synced} 1", "gates_open{g,K} 1", "gates_overdue{g,K} 1"},
			news: []news{{overdue: true}, {}, {}},
		},
		"CloseOverdue": {
			reason: "Where it is closed at once it is told of all the same.",
			do: func(l *Ledger) []news {
				return []news{l.moved(gk, key, record(v1alpha1.GateOpen), plan(gate.CloseUp, v1alpha1.GateClosed, managed.WaitSynced, true), start.Add(time.Minute))}
			},
			want: []string{
				"gate_moves_total{g,K,CloseOverdue} 1", "gate_open_seconds{g,K} 1, 60s", "gate_timeouts_total{g,K} 1", "gate_waits_total{g,K,Synced} 1",
			},
			news: []news{{overdue: true}},
		},
		"Drift": {
			reason: "What was changed outside counts until it is reverted.",
			do: func(l *Ledger) []news {
				l.tell(gk, key, topicDrift, "one digest")
				l.tell(gk, types.NamespacedName{Name: "other"}, topicDrift, "another")
				l.tell(gk, key, topicDrift, "")

				return nil
			},
			want: []string{"drifted_resources{g,K} 1"},
		},
		"Broken": {
			reason: "A condition that cannot be evaluated is told of once, and again when it fails for another reason.",
			do: func(l *Ledger) []news {
				out := make([]news, 0, 4)

				for _, err := range []error{fixture.ErrBroken, fixture.ErrBroken, nil, fixture.ErrRefused} {
					p := plan(gate.Stay, v1alpha1.GateOpen, managed.WaitCondition, false)
					p.Broken = err
					out = append(out, l.stays(gk, key, p))
				}

				return out
			},
			want: []string{"gate_waits_total{g,K,CloseWhen} 1", "gates_open{g,K} 1"},
			news: []news{{broken: true}, {}, {}, {broken: true}},
		},
		"Reclose": {
			reason: "A hand edit that is put back is no closing.",
			do: func(l *Ledger) []news {
				l.moved(gk, key, record(v1alpha1.GateClosed), plan(gate.CloseUp, v1alpha1.GateClosed, "", false), start)

				return nil
			},
			want: []string{"gate_moves_total{g,K,Reclose} 1"},
		},
		"Gone": {
			reason: "A gate that was open for the deletion ends with the resource; a resource without one says nothing.",
			do: func(l *Ledger) []news {
				l.stays(gk, key, plan(gate.Stay, v1alpha1.GateOpen, managed.WaitGone, false))
				l.Gone(gk, key, start.Add(time.Second))
				l.Gone(gk, key, start.Add(time.Second))

				return nil
			},
			want: []string{"gate_moves_total{g,K,Gone} 1", "gate_open_seconds{g,K} 1, 1s", "gate_waits_total{g,K,Gone} 1"},
		},
		"CameOpen": {
			reason: "A gate that came open since it counts is told of once, also where it is to close by now; at first sight of a new resource, as such.",
			do: func(l *Ledger) []news {
				since := metav1.NewTime(start.Add(time.Hour))
				came, first := plan(gate.Stay, v1alpha1.GateOpen, managed.WaitSynced, false), plan(gate.Stay, v1alpha1.GateOpen, managed.WaitReady, false)
				came.Record.Since, first.Record.Since, first.Record.Creating = since, since, true
				closes := plan(gate.CloseUp, v1alpha1.GateClosed, "", false)

				return []news{
					l.stays(gk, key, came), l.stays(gk, key, came), l.moved(gk, key, &came.Record, closes, start.Add(time.Hour)),
					l.moved(gk, key, &came.Record, closes, start.Add(time.Hour)),
					l.stays(gk, key, first),
				}
			},
			news: []news{{opened: true}, {}, {}, {opened: true}, {opened: true}},
			want: []string{
				"gate_moves_total{g,K,Close} 2", "gate_moves_total{g,K,Open} 2", "gate_moves_total{g,K,TakeOver} 1", "gate_open_seconds{g,K} 2, 0s",
				"gate_waits_total{g,K,Ready} 1", "gate_waits_total{g,K,Synced} 1", "gates_open{g,K} 1",
			},
		},
		"NobodyLooks": {
			reason: "Of a kind that nobody looks at any more nothing is left.",
			do: func(l *Ledger) []news {
				for i := range 3 {
					k := types.NamespacedName{Name: strconv.Itoa(i)}
					l.moved(gk, k, record(v1alpha1.GateClosed), plan(gate.OpenUp, v1alpha1.GateOpen, "", false), start)
					l.stays(gk, k, plan(gate.Stay, v1alpha1.GateOpen, managed.WaitSynced, true))
					l.tell(gk, k, topicUnparsed, "broken")
				}

				l.moved(gk, key, record(v1alpha1.GateOpen), plan(gate.CloseUp, v1alpha1.GateClosed, "", false), start.Add(time.Hour))
				l.Forget(gk)

				return nil
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewRegistry()

			l, err := NewLedger(reg, func() time.Time { return start.Add(time.Second) })
			if err != nil {
				t.Fatal(err)
			}

			got := tc.do(l)
			if diff := cmp.Diff(tc.news, got, cmp.AllowUnexported(news{})); diff != "" {
				t.Errorf("%s\nnews, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.want, fixture.Counted(t, reg)); diff != "" {
				t.Errorf("%s\nmetrics, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
