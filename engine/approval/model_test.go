// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// The model is an XR with three children and a manager with a cache. Each child has one change
// that a pipeline may ask for, of which the last is a deletion. All that happens is recorded by
// the model itself, which knows nothing of plans.
const (
	children   = 3
	deletedOne = 3
	sequences  = 2000
	steps      = 60
)

// part is a child as the API server has it.
type part struct {
	made, deleting, gone bool
	used                 []v1alpha1.Use
}

// parentState is the XR.
type parentState struct {
	version    int
	allowances []v1alpha1.Allowance
	list       *v1alpha1.State // nil while the pipeline fails
}

type rootState struct {
	version  int
	approved []v1alpha1.ApprovedChange
}

type approvalState struct {
	version int
	cha     v1alpha1.ChangeApproval
}

// state is what the API server, or the cache, has.
type state struct {
	parent    parentState
	root      rootState
	approvals map[types.UID]approvalState
}

func (s state) clone() state {
	s.approvals = maps.Clone(s.approvals)

	return s
}

type model struct {
	t    *testing.T
	rand *rand.Rand
	log  []line

	now           time.Time
	live, cache   state
	parts         [children + 1]part
	asked, paused [children + 1]bool
	noRight       map[string]bool
	requester     string
	required      int32
	listed        []v1alpha1.HeldChange
	changes       []v1alpha1.HeldChange
	made          int
	// uses are how often an approval was used for a change, by UID, and by name.
	uses, named map[string]int
	// grants are how often one was granted.
	grants map[string]int
	// calm is true once nothing is stopped any more.
	calm bool
}

func modelEntry(n int) v1alpha1.HeldChange {
	e := entry(n)
	if n == deletedOne {
		e.Field = v1alpha1.MutationDelete
	}

	return e
}

func newModel(t *testing.T, seed uint64) *model {
	t.Helper()

	return &model{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: start,
		live: state{parent: parentState{list: &v1alpha1.State{}}, approvals: map[types.UID]approvalState{}}, cache: state{parent: parentState{list: &v1alpha1.State{}}},
		noRight: map[string]bool{}, requester: "anna", required: 1 + int32(seed%4/3),
		uses: map[string]int{}, named: map[string]int{}, grants: map[string]int{},
	}
}

// line is one of the log, which is written only where something fails.
type line struct {
	format string
	args   []any
}

func (l line) String() string { return fmt.Sprintf(l.format, l.args...) }

// planned is a plan in the log.
type planned struct {
	in   approval.Input
	plan approval.Plan
}

func (p planned) String() string { return fmt.Sprintf("%+v", say(p.in, p.plan)) }

func (m *model) logf(format string, args ...any) { m.log = append(m.log, line{format, args}) }

func (m *model) failf(format string, args ...any) {
	m.t.Helper()

	for _, l := range m.log {
		m.t.Log(l)
	}

	m.t.Fatalf(format, args...)
}

func key(uid, digest string) string { return uid + " " + digest }

func (m *model) step() {
	n := 1 + m.rand.IntN(children)

	switch m.rand.IntN(24) {
	case 0, 1, 2:
		m.asked[n] = true
		m.logf("child %d: asked", n)
	case 3:
		m.asked[n] = false
		m.logf("child %d: taken back", n)
	case 4:
		if p := &m.parts[n]; p.made && n != deletedOne {
			p.made = false
			m.logf("child %d: put back", n)
		}
	case 5:
		m.paused[n] = !m.paused[n]
		m.logf("child %d: paused %t", n, m.paused[n])
	case 6:
		if p := &m.parts[deletedOne]; p.deleting {
			p.gone = true
			m.logf("child %d: gone", deletedOne)
		}
	case 7, 8, 9:
		m.decide()
	case 10:
		m.withdraw()
	case 11:
		user := m.user()
		if m.rand.IntN(3) > 0 {
			break
		}

		m.noRight[user] = !m.noRight[user]
		m.logf("%s: no right %t", user, m.noRight[user])
	case 12:
		m.now = m.now.Add(time.Duration(m.rand.IntN(6)) * time.Hour)
		m.logf("it is %s", m.now.Format(time.RFC3339))
	case 13:
		if m.rand.IntN(4) == 0 {
			m.live.parent.list = nil
			m.live.parent.version++
			m.logf("the pipeline fails")
		}
	case 14, 15, 16:
		m.run()
	case 17, 18:
		m.sync()
	case 19, 20:
		m.syncAll()
		m.settle(m.rand.IntN(8))
	default:
		m.settle(m.rand.IntN(8))
	}

	m.invariants()
}

func (m *model) user() string { return []string{"anna", "berta", "carl"}[m.rand.IntN(3)] }

// decide makes a ChangeApproval, often of a name that there was before.
func (m *model) decide() {
	user := m.user()

	cha := by(fmt.Sprintf("a%d", m.rand.IntN(6)), user)
	cha.CreationTimestamp = metav1.NewTime(m.now)

	for _, other := range m.live.approvals {
		if other.cha.Name == cha.Name {
			return
		}
	}

	for n := range children {
		if m.rand.IntN(2) == 0 {
			cha.Spec.Changes = append(cha.Spec.Changes, sum(n+1))
		}
	}

	switch m.rand.IntN(12) {
	case 0, 1:
		cha.Spec.Decision = v1alpha1.DecisionReject
	case 2:
		cha.Spec.Decision = v1alpha1.DecisionBreakGlass
	}

	m.made++
	cha.UID = types.UID(fmt.Sprintf("%s-%d", cha.Name, m.made))
	m.live.approvals[cha.UID] = approvalState{cha: cha}
	m.logf("%s makes %s: %s of %v", user, cha.UID, cha.Spec.Decision, numbers(cha.Spec.Changes))
}

func numbers(digests []string) string {
	out := make([]string, 0, len(digests))
	for _, d := range digests {
		out = append(out, strings.TrimLeft(strings.TrimPrefix(d, "sha256:"), "0"))
	}

	return strings.Join(out, ",")
}

func (m *model) withdraw() {
	uids := slices.Sorted(maps.Keys(m.live.approvals))
	if len(uids) > 0 {
		uid := uids[m.rand.IntN(len(uids))]
		delete(m.live.approvals, uid)
		m.logf("%s is withdrawn", uid)
	}
}

// sync has the cache get to show some of what is there.
func (m *model) sync() {
	what := m.rand.IntN(8)
	if what&1 != 0 {
		m.cache.parent = m.live.parent
	}

	if what&2 != 0 {
		m.cache.root = m.live.root
	}

	if what&4 != 0 {
		m.cache.approvals = m.live.clone().approvals
	}

	m.logf("the cache shows %b", what)
}

func (m *model) syncAll() { m.cache = m.live.clone() }

// shows reports whether a child's record shows the use of an allowance.
func (p *part) shows(a v1alpha1.Allowance) bool { return slices.Contains(p.used, allowance.UseOf(a)) }

// run runs the pipeline: its function lets through what is allowed, Crossplane applies it, and
// the list is written, unless Crossplane is stopped before.
func (m *model) run() {
	list, was := &v1alpha1.State{}, m.live.parent.list
	reported := func(a v1alpha1.Allowance) bool {
		return was != nil && slices.Contains(was.Approvals, v1alpha1.ApprovalUse{Approval: a.Approval, Digest: a.Digest, State: v1alpha1.ApprovalUsed})
	}

	passed := map[int]v1alpha1.Allowance{}

	for n := 1; n <= children; n++ {
		p := &m.parts[n]
		if !m.asked[n] || p.made || p.gone || p.deleting {
			continue
		}

		for _, a := range m.live.parent.allowances {
			if a.Digest == sum(n) && !allowance.External(a) && !reported(a) && !p.shows(a) && !m.paused[n] {
				passed[n] = a

				break
			}
		}

		if _, ok := passed[n]; !ok {
			list.Changes = append(list.Changes, modelEntry(n))
		}
	}

	for _, a := range m.live.parent.allowances {
		n := 0
		if _, err := fmt.Sscanf(strings.TrimPrefix(a.Digest, "sha256:"), "%d", &n); err != nil {
			m.failf("an allowance of digest %q", a.Digest)
		}

		use := v1alpha1.ApprovalUse{Approval: a.Approval, Digest: a.Digest, State: v1alpha1.ApprovalAbsent}

		switch other, ok := passed[n]; {
		case reported(a) || m.parts[n].shows(a) && n != deletedOne:
			use.State = v1alpha1.ApprovalUsed
		case ok && other.Approval == a.Approval:
			use.State = v1alpha1.ApprovalApplying
		case slices.ContainsFunc(list.Changes, func(e v1alpha1.HeldChange) bool { return e.Digest == a.Digest }):
			use.State = v1alpha1.ApprovalWaiting
		}

		list.Approvals = append(list.Approvals, use)
	}

	m.logf("the pipeline holds %d, lets %d through", len(list.Changes), len(passed))

	for _, n := range slices.Sorted(maps.Keys(passed)) {
		m.apply(n, passed[n])
	}

	if !m.calm && m.rand.IntN(5) == 0 {
		m.logf("Crossplane is stopped before it writes the list")

		return
	}

	m.live.parent.list = list
	m.live.parent.version++
}

// apply makes a change, which is when an approval is used.
func (m *model) apply(n int, a v1alpha1.Allowance) {
	p := &m.parts[n]

	if n == deletedOne {
		p.deleting = true
	} else {
		p.made = true
	}

	p.used = append(p.used, allowance.UseOf(a))

	m.uses[key(a.Approval, a.Digest)]++
	m.named[key(a.Trace[0].Name, a.Digest)]++
	m.logf("child %d is changed by %s", n, a.Approval)
}

// object is a child as it is read.
func (m *model) object(n int) approval.Seen {
	p := &m.parts[n]
	if p.gone {
		return approval.Seen{}
	}

	return child(n, func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{v1alpha1.AnnotationRecord: allowance.FormatRecord(v1alpha1.ObjectRecord{Used: p.used})})

		if p.deleting {
			deleting(u)
		}
	})
}

// MayDecide implements approval.Cluster.
func (m *model) MayDecide(
	_ context.Context, a v1alpha1.Approver, _ v1alpha1.ApprovalDecision, _ v1alpha1.HeldChange,
) (bool, string, error) {
	return !m.noRight[a.Username], "no right", nil
}

func listOf(approvals map[types.UID]approvalState) []v1alpha1.ChangeApproval {
	out := make([]v1alpha1.ChangeApproval, 0, len(approvals))
	for _, uid := range slices.Sorted(maps.Keys(approvals)) {
		a := approvals[uid]
		cha := a.cha.DeepCopy()
		cha.ResourceVersion = strconv.Itoa(a.version)
		out = append(out, *cha)
	}

	return out
}

// settle has the manager plan by its cache, and write until it is stopped.
func (m *model) settle(stopAfter int) {
	// 1. What is held, as the cache has it.
	current := metav1.ConditionTrue
	if m.cache.parent.list == nil {
		current = metav1.ConditionFalse
	} else {
		m.changes = m.cache.parent.list.Changes
	}

	in := input()
	in.Status.Changes, in.Status.Total, in.Status.Required, in.Status.Requesters = m.changes, int32(len(m.changes)), m.required, []string{m.requester}
	in.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionCurrent, Status: current}}
	in.Approvals, in.Approved, in.Now, in.Cluster = listOf(m.cache.approvals), m.cache.root.approved, m.now, m
	xr(&in).Allowances, xr(&in).List = m.cache.parent.allowances, m.cache.parent.list

	// 2. The plan; what cannot be undone by what the API server has.
	in.Confirmed = false

	plan := compute(m.t, in)
	if plan.Unconfirmed {
		m.confirm(&in)
		in.Confirmed = true
		plan = compute(m.t, in)
	}

	m.logf("the manager plans %s", planned{in, plan})
	m.write(in, plan, stopAfter)
}

// confirm reads from the API server what the cache may be behind of.
func (m *model) confirm(in *approval.Input) {
	in.Approved, in.Listed = m.live.root.approved, m.listed

	known := map[types.UID]bool{}
	for uid := range m.cache.approvals {
		known[uid] = true
	}

	for _, a := range m.cache.parent.allowances {
		known[types.UID(a.Approval)] = true
	}

	var list []v1alpha1.ChangeApproval

	for _, cha := range listOf(m.live.approvals) {
		if known[cha.UID] {
			list = append(list, cha)
		}
	}

	in.Approvals = list
}

// Object implements approval.Cluster.
func (m *model) Object(_ context.Context, ref v1alpha1.ObjectReference) (approval.Seen, error) {
	for n := 1; n <= children; n++ {
		if childRef(n) == ref {
			return m.object(n), nil
		}
	}

	p, text := m.live.parent, ""
	if p.list != nil {
		text = resource.FormatState(*p.list)
	}

	seen := seenXR(text)
	seen.Object.SetAnnotations(map[string]string{v1alpha1.AnnotationAllowances: allowance.FormatList(p.allowances)})

	return seen, nil
}

// write carries a plan out until it is stopped, or something has changed since it was read.
func (m *model) write(in approval.Input, plan approval.Plan, stopAfter int) {
	var todo []func() bool

	written := map[types.UID]int{}

	for _, w := range plan.First {
		todo = append(todo, func() bool { return m.writeStatus(w, written) })
	}

	if plan.Remember != nil {
		todo = append(todo, func() bool {
			ok := m.cache.root.version == m.live.root.version
			if ok {
				m.live.root = rootState{version: m.live.root.version + 1, approved: plan.Remember}
			}

			return ok
		})
	}

	for _, w := range plan.Parents {
		todo = append(todo, func() bool { return m.writeParent(in, w) })
	}

	for _, w := range plan.Last {
		todo = append(todo, func() bool { return m.writeStatus(w, written) })
	}

	for _, cha := range plan.Delete {
		todo = append(todo, func() bool {
			delete(m.live.approvals, cha.UID)

			return true
		})
	}

	for i, write := range todo {
		if i == stopAfter {
			m.logf("the manager is stopped after %d writes", i)

			return
		}

		if !write() {
			m.logf("conflict after %d writes", i)

			return
		}

		m.invariants()
	}

	m.listed = m.changes
}

// writeStatus writes a status of the version that was read, or that was just written.
func (m *model) writeStatus(w approval.Written, written map[types.UID]int) bool {
	live, ok := m.live.approvals[w.Approval.UID]
	if !ok {
		return true // Withdrawn.
	}

	if version, ok := written[w.Approval.UID]; w.Approval.ResourceVersion != strconv.Itoa(live.version) && (!ok || version != live.version) {
		return false
	}

	live.version++
	live.cha.Status = w.Status
	m.live.approvals[w.Approval.UID] = live
	written[w.Approval.UID] = live.version

	return true
}

func (m *model) writeParent(in approval.Input, w approval.ParentWrite) bool {
	if m.cache.parent.version != m.live.parent.version {
		return false
	}

	for _, g := range w.Add {
		m.mayBeGranted(in, g)
	}

	m.live.parent.allowances = w.Apply(m.live.parent.allowances)
	m.live.parent.version++

	return true
}

// mayBeGranted is the oracle of what is granted: it counts by itself.
func (m *model) mayBeGranted(in approval.Input, g approval.Grant) {
	k := key(string(g.UID), g.Digest)
	m.grants[k]++

	if m.uses[k] > 0 || m.named[key(g.Approval, g.Digest)] > 0 {
		m.failf("%s is granted again", k)
	}

	if !slices.ContainsFunc(in.Status.Changes, func(e v1alpha1.HeldChange) bool { return e.Digest == g.Digest }) {
		m.failf("%s is granted, and not held", k)
	}

	people := map[string]bool{}
	newest := map[string]v1alpha1.ChangeApproval{}

	for _, a := range m.live.approvals {
		user := a.cha.Spec.Approver.Username

		if !slices.Contains(a.cha.Spec.Changes, g.Digest) || m.noRight[user] ||
			slices.ContainsFunc(a.cha.Status.Changes, func(d v1alpha1.ChangeDecision) bool { return d.Digest == g.Digest && d.State.Final() }) {
			continue
		}

		_, cached := m.cache.approvals[a.cha.UID] // What just came the cache may not have yet.
		expired := a.cha.Spec.Decision != v1alpha1.DecisionReject && m.now.Sub(a.cha.CreationTimestamp.Time) >= v1alpha1.DefaultValidFor

		if !cached || expired || a.cha.Spec.Decision == v1alpha1.DecisionApprove && user == m.requester {
			continue
		}

		if b, ok := newest[user]; !ok || a.cha.CreationTimestamp.After(b.CreationTimestamp.Time) ||
			a.cha.CreationTimestamp.Equal(&b.CreationTimestamp) && a.cha.Spec.Decision == v1alpha1.DecisionReject {
			newest[user] = a.cha
		}
	}

	by := m.live.approvals[g.UID].cha
	if last, counts := newest[by.Spec.Approver.Username]; counts && by.Spec.Decision == v1alpha1.DecisionBreakGlass &&
		last.Spec.Decision != v1alpha1.DecisionReject && m.now.Sub(by.CreationTimestamp.Time) < v1alpha1.DefaultValidFor {
		return // One is enough, whoever else rejects it.
	}

	for user, cha := range newest {
		if cha.Spec.Decision == v1alpha1.DecisionReject {
			m.failf("%s is granted, and %s rejects it", k, user)
		}

		people[user] = true
	}

	if len(people) < int(m.required) {
		m.failf("%s is granted by %v, of whom it takes %d", k, people, m.required)
	}
}

// invariants hold at each moment.
func (m *model) invariants() {
	for k, n := range m.uses {
		if n > 1 {
			m.failf("%s is used %d times", k, n)
		}
	}

	for k, n := range m.named {
		if n > 1 {
			m.failf("by name, %s is used %d times", k, n)
		}
	}

	for _, a := range m.live.parent.allowances {
		cha, ok := m.live.approvals[types.UID(a.Approval)]
		if !ok {
			continue
		}

		if !slices.Contains(cha.cha.Spec.Changes, a.Digest) || cha.cha.Spec.Decision == v1alpha1.DecisionReject {
			m.failf("%s is carried, and nobody has approved it", key(a.Approval, a.Digest))
		}

		for _, d := range cha.cha.Status.Changes {
			if d.Digest == a.Digest && d.State.Final() {
				m.failf("%s is carried, and %s", key(a.Approval, a.Digest), d.State)
			}
		}
	}
}

// end has everything come to rest, and looks at what it came to.
func (m *model) end() {
	m.paused, m.calm = [children + 1]bool{}, true

	for range 12 {
		m.parts[deletedOne].gone = m.parts[deletedOne].deleting
		m.run()
		m.syncAll()
		m.settle(-1)
	}

	m.syncAll()

	for _, a := range m.live.parent.allowances {
		m.failf("at the end %s is carried", key(a.Approval, a.Digest))
	}

	for _, a := range m.live.approvals {
		for _, d := range a.cha.Status.Changes {
			used := m.uses[key(string(a.cha.UID), d.Digest)] > 0

			switch {
			case d.State == v1alpha1.ApprovalStateGranted:
				m.failf("at the end %s is %s of %s", a.cha.UID, d.State, numbers([]string{d.Digest}))
			case used && d.State != v1alpha1.ApprovalStateApplied:
				m.failf("at the end %s was used for %s, and is %s", a.cha.UID, numbers([]string{d.Digest}), d.State)
			}
		}
	}
}

func TestWhateverHappensWhatIsApprovedIsMadeOnce(t *testing.T) {
	// One that was used is withdrawn, and another made under its name, while nothing tells what was held.
	seeds := make([]uint64, 0, sequences+1)
	seeds = append(seeds, 707638)

	for i := range uint64(sequences) {
		seeds = append(seeds, i)
	}

	if text := os.Getenv("KAUSALITY_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}

		seeds = []uint64{seed}
	}

	uses, grants := 0, 0

	for _, seed := range seeds {
		m := newModel(t, seed)
		m.logf("KAUSALITY_SEED=%d", seed)

		for range steps {
			m.step()
		}

		m.end()

		uses += len(m.uses)
		grants += len(m.grants)
	}

	if len(seeds) > 1 && (uses < sequences/4 || grants < sequences/2) {
		t.Errorf("of %d sequences only %d grants, and %d uses", len(seeds), grants, uses)
	}

	t.Logf("%d sequences, %d grants, %d uses", len(seeds), grants, uses)
}
