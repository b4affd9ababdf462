// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Kinds of moves that are counted.
const (
	moveTakeOver = "TakeOver"
	moveOpen     = "Open"
	moveWiden    = "Widen"
	moveClose    = "Close"
	moveTimeout  = "CloseOverdue"
	moveReclose  = "Reclose"
	moveGone     = "Gone"
)

// Ledger knows which gates are open and since when, what was reported of them, and
// counts what happens to them. What it knows is from the gates' own records, so
// that it is right after a restart once every object was reconciled. It is about
// gates alone, which no library knows.
type Ledger struct {
	open, overdue *prometheus.Desc
	drifted       *prometheus.Desc
	seconds       *prometheus.HistogramVec
	moves         *prometheus.CounterVec
	waits         *prometheus.CounterVec
	timeouts      *prometheus.CounterVec
	now           func() time.Time

	mu sync.Mutex
	// began is since when it is told of gates, zero for never: what was opened before is not news.
	began time.Time
	// kinds has the gates of each kind that are open.
	kinds map[schema.GroupKind]map[types.NamespacedName]*opening
	// told has what was reported of resources, by what it is about.
	told map[schema.GroupKind]map[types.NamespacedName]map[topic]string
}

// topic is what is reported of a resource once.
type topic string

const (
	// topicUnparsed is an annotation that does not parse.
	topicUnparsed topic = "unparsed"
	// topicTwin is another managed resource that stands for the same external object.
	topicTwin topic = "twin"
	// topicDrift is what somebody has changed of the external object.
	topicDrift topic = "drift"
)

// opening is one gate while it is open.
type opening struct {
	since   time.Time
	wait    managed.Wait
	overdue bool
	broken  string
}

// openBuckets are from what an allowed change takes at least to what is a case
// for somebody.
func openBuckets() []float64 {
	return []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 2 * 3600, 6 * 3600, 24 * 3600}
}

// NewLedger makes a Ledger by a clock, and registers its metrics.
func NewLedger(reg prometheus.Registerer, now func() time.Time) (*Ledger, error) {
	kind := []string{object.LabelGroup, object.LabelKind}
	l := &Ledger{
		now:   now,
		kinds: map[schema.GroupKind]map[types.NamespacedName]*opening{},
		told:  map[schema.GroupKind]map[types.NamespacedName]map[topic]string{},
		open:  prometheus.NewDesc("kausality_gates_open", "Gates that are open now.", kind, nil),
		overdue: prometheus.NewDesc("kausality_gates_overdue",
			"Gates that are open now and have been for longer than their policy, or --max-open, says.", kind, nil),
		drifted: prometheus.NewDesc("kausality_drifted_resources",
			"Managed resources with a closed gate whose external object was changed outside since the gate closed.", kind, nil),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kausality_gate_open_seconds",
			Help:    "How long gates were open, of those that are closed again or whose resource is gone.",
			Buckets: openBuckets(),
		}, kind),
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_gate_moves_total",
			Help: "Moves of gates: Open, Close, TakeOver of what was found without a record, Widen of one that was open, " +
				"CloseOverdue, Reclose after a hand edit, Gone with its resource.",
		}, append(slices.Clone(kind), "move")),
		waits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_gate_waits_total",
			Help: "How often an open gate began to wait for something: Synced, AsyncOperation, Ready, External, CloseWhen, Settle, Gone.",
		}, append(slices.Clone(kind), "reason")),
		timeouts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kausality_gate_timeouts_total",
			Help: "Gates that became overdue.",
		}, kind),
	}

	for _, c := range []prometheus.Collector{l, l.seconds, l.moves, l.waits, l.timeouts} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("cannot register metrics: %w", err)
		}
	}

	return l, nil
}

// Describe describes the gauges.
func (l *Ledger) Describe(out chan<- *prometheus.Desc) {
	out <- l.open

	out <- l.overdue

	out <- l.drifted
}

// Collect counts the gates that are open, and what has drifted.
func (l *Ledger) Collect(out chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()

	for gk, gates := range l.kinds {
		late := 0

		for _, o := range gates {
			if o.overdue {
				late++
			}
		}

		out <- prometheus.MustNewConstMetric(l.open, prometheus.GaugeValue, float64(len(gates)), gk.Group, gk.Kind)

		out <- prometheus.MustNewConstMetric(l.overdue, prometheus.GaugeValue, float64(late), gk.Group, gk.Kind)
	}

	for gk, told := range l.told {
		n := 0

		for _, of := range told {
			if of[topicDrift] != "" {
				n++
			}
		}

		out <- prometheus.MustNewConstMetric(l.drifted, prometheus.GaugeValue, float64(n), gk.Group, gk.Kind)
	}
}

// news is what has not been reported of a gate before.
type news struct {
	opened, overdue, broken bool
}

// stays notes a gate that is left as it is.
func (l *Ledger) stays(gk schema.GroupKind, key types.NamespacedName, plan *gate.Plan) news {
	l.mu.Lock()
	defer l.mu.Unlock()

	if plan.Record.State != v1alpha1.GateOpen {
		delete(l.of(gk), key)

		return news{}
	}

	came := l.came(gk, key, &plan.Record)
	out := l.waiting(gk, l.opened(gk, key, plan.Record.Since.Time), plan)
	out.opened = came

	return out
}

// came notes, and reports, whether a gate that is open came open with the write of what it is open for: nobody moved it.
func (l *Ledger) came(gk schema.GroupKind, key types.NamespacedName, rec *v1alpha1.GateRecord) bool {
	if l.began.IsZero() {
		l.began = l.now().Truncate(time.Second)
	}

	if _, known := l.of(gk)[key]; known || rec.Since.Time.Before(l.began) {
		return false
	}

	move := moveOpen
	if rec.Creating {
		move = moveTakeOver
	}

	l.moves.WithLabelValues(gk.Group, gk.Kind, move).Inc()

	return true
}

// waiting notes what an open gate waits for.
func (l *Ledger) waiting(gk schema.GroupKind, o *opening, plan *gate.Plan) news {
	if plan.Wait != "" && plan.Wait != o.wait {
		l.waits.WithLabelValues(gk.Group, gk.Kind, string(plan.Wait)).Inc()
	}

	o.wait = plan.Wait
	out := news{overdue: plan.Overdue && !o.overdue}

	if out.overdue {
		l.timeouts.WithLabelValues(gk.Group, gk.Kind).Inc()
	}

	o.overdue = plan.Overdue

	broken := ""
	if plan.Broken != nil {
		broken = plan.Broken.Error()
	}

	out.broken = broken != "" && broken != o.broken
	o.broken = broken

	return out
}

// moved notes a move that was made. Before is what the gate's record was, nil
// for none.
func (l *Ledger) moved(gk schema.GroupKind, key types.NamespacedName, before *v1alpha1.GateRecord, plan *gate.Plan, now time.Time) news {
	l.mu.Lock()
	defer l.mu.Unlock()

	was := before != nil && before.State == v1alpha1.GateOpen
	came := was && l.came(gk, key, before)
	l.moves.WithLabelValues(gk.Group, gk.Kind, nameOf(before, plan)).Inc()

	switch {
	case plan.Record.State == v1alpha1.GateOpen && was:
		o := l.opened(gk, key, before.Since.Time)
		o.wait, o.overdue = "", false // Its time begins anew.

		return news{opened: came}
	case plan.Record.State == v1alpha1.GateOpen:
		l.of(gk)[key] = &opening{since: now}
	case was:
		o := l.opened(gk, key, before.Since.Time)
		out := l.waiting(gk, o, plan)
		out.opened = came
		l.ended(gk, key, now)

		return out
	default:
		delete(l.of(gk), key)
	}

	return news{}
}

// nameOf says what a move is counted as.
func nameOf(before *v1alpha1.GateRecord, plan *gate.Plan) string {
	opens := plan.Record.State == v1alpha1.GateOpen

	switch {
	case before == nil:
		return moveTakeOver
	case before.State == v1alpha1.GateOpen && opens:
		return moveWiden
	case before.State == v1alpha1.GateOpen && plan.Overdue:
		return moveTimeout
	case before.State == v1alpha1.GateOpen:
		return moveClose
	case opens:
		return moveOpen
	default:
		return moveReclose
	}
}

// Gone notes that an object is not there any more; an open gate ends with it.
func (l *Ledger) Gone(gk schema.GroupKind, key types.NamespacedName, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()

	delete(l.told[gk], key)

	if _, ok := l.kinds[gk][key]; ok {
		l.moves.WithLabelValues(gk.Group, gk.Kind, moveGone).Inc()
		l.ended(gk, key, now)
	}
}

// Forget takes a kind that nobody reconciles out of all that is counted.
func (l *Ledger) Forget(gk schema.GroupKind) {
	l.mu.Lock()
	defer l.mu.Unlock()

	delete(l.kinds, gk)
	delete(l.told, gk)

	labels := prometheus.Labels{"group": gk.Group, "kind": gk.Kind}

	l.seconds.DeletePartialMatch(labels)

	for _, c := range []*prometheus.CounterVec{l.moves, l.waits, l.timeouts} {
		c.DeletePartialMatch(labels)
	}
}

// tell notes what there is to report of a resource about something, empty for nothing. It returns whether that is new.
func (l *Ledger) tell(gk schema.GroupKind, key types.NamespacedName, about topic, text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	of := l.told[gk][key]

	switch {
	case text == "":
		delete(of, about)

		return false
	case of[about] == text:
		return false
	case l.told[gk] == nil:
		l.told[gk] = map[types.NamespacedName]map[topic]string{}
	}

	if of == nil {
		of = map[topic]string{}
		l.told[gk][key] = of
	}

	of[about] = text

	return true
}

// OpenGates are those that are open, by kind.
func (l *Ledger) OpenGates() map[schema.GroupKind][]types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()

	out := make(map[schema.GroupKind][]types.NamespacedName, len(l.kinds))
	for gk, gates := range l.kinds {
		out[gk] = slices.Collect(maps.Keys(gates))
	}

	return out
}

func (l *Ledger) of(gk schema.GroupKind) map[types.NamespacedName]*opening {
	if l.kinds[gk] == nil {
		l.kinds[gk] = map[types.NamespacedName]*opening{}
	}

	return l.kinds[gk]
}

// opened returns what is known of an open gate; where nothing is, since the time
// that its record says, to the second.
func (l *Ledger) opened(gk schema.GroupKind, key types.NamespacedName, since time.Time) *opening {
	o, ok := l.of(gk)[key]
	if !ok {
		o = &opening{since: since}
		l.of(gk)[key] = o
	}

	return o
}

// ended counts how long a gate was open.
func (l *Ledger) ended(gk schema.GroupKind, key types.NamespacedName, now time.Time) {
	l.seconds.WithLabelValues(gk.Group, gk.Kind).Observe(max(0, now.Sub(l.kinds[gk][key].since).Seconds()))
	delete(l.kinds[gk], key)
}
