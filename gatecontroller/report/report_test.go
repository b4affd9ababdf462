// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/gates"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/internal/openreport"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const (
	edited = `{apiVersion: example.org/v1, kind: Database, metadata: {name: db, namespace: team-a, uid: db, annotations: {kausality.io/held:
  '[{field: spec.size, from: small, cause: {type: Edit, user: anna, since: 2026-03-04T00:00:00Z}, stored: {}}]'}}}`
	asAsked = `{apiVersion: example.org/v1, kind: Database, metadata: {name: db, namespace: team-a, uid: db}}`
	xr      = `{apiVersion: example.org/v1, kind: XDatabase, metadata: {name: db-x, uid: xr}, spec: {compositionRevisionRef: {name: runs-1},
  claimRef: {apiVersion: example.org/v1, kind: Database, namespace: team-a, name: db},
  resourceRefs: [{apiVersion: v1, kind: ConfigMap, name: db-c, namespace: apps}]}}`
	orphan = `{apiVersion: example.org/v1, kind: Instance, metadata: {name: db-1, uid: mr,
  ownerReferences: [{apiVersion: example.org/v1, kind: XDatabase, name: gone, uid: gone, controller: true}]}, spec: {forProvider: {}}}`
)

// crd is what the cache has of one of OpenReports.
func crd(name string) client.Object {
	out := definition()
	out.SetName(name)

	return out
}

// watched are objects that are watched, and kinds that are not known yet.
type watched struct {
	objects []unstructured.Unstructured
	unknown []schema.GroupVersionKind
	err     error
}

func (w watched) Kinds() []schema.GroupVersionKind {
	out := slices.Clone(w.unknown)

	for _, u := range w.objects {
		if !slices.Contains(out, u.GroupVersionKind()) {
			out = append(out, u.GroupVersionKind())
		}
	}

	return out
}

func (w watched) List(_ context.Context, gvk schema.GroupVersionKind) ([]unstructured.Unstructured, bool, error) {
	var out []unstructured.Unstructured

	for _, u := range w.objects {
		if u.GroupVersionKind() == gvk {
			out = append(out, u)
		}
	}

	return out, !slices.Contains(w.unknown, gvk), w.err
}

// harness is a Reconciler of a small cluster.
type harness struct {
	Reconciler *Reconciler

	client client.WithWatch
	// cached is what the cache has of CRDs and policies.
	cached client.Client
	// calls are the requests to the API server, as VERB KIND.
	calls []string
	// gone are namespaces that are not there.
	gone []string
	// fail is what the next write fails with.
	fail error
	// listing is what lists fail with.
	listing error
	now     time.Time
	logged  []string
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()

	out := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, openreports.Install, metav1.AddMetaToScheme} {
		if err := add(out); err != nil {
			t.Fatal(err)
		}
	}

	return out
}

func newHarness(t *testing.T, texts ...string) *harness {
	t.Helper()

	h := &harness{now: time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)}
	write := func(verb string, obj runtime.Object) error {
		h.calls = append(h.calls, fmt.Sprintf("%s %s", verb, kindOf(obj)))
		err := h.fail
		h.fail = nil

		return err
	}

	h.client = fake.NewClientBuilder().WithScheme(scheme(t)).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := write("create", obj); err != nil {
				return err
			}

			if slices.Contains(h.gone, obj.GetNamespace()) {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, obj.GetNamespace())
			}

			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := write("patch", obj); err != nil {
				return err
			}

			return c.Patch(ctx, obj, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := write("delete", obj); err != nil {
				return err
			}

			return c.Delete(ctx, obj, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			h.calls = append(h.calls, "get "+kindOf(obj))

			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if h.listing != nil {
				return h.listing
			}

			return c.List(ctx, list, opts...)
		},
	}).Build()
	h.cached = fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(crd(openreport.CRDReports), crd(openreport.CRDClusterReports)).Build()

	configMaps := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(configMaps, configMaps.GroupVersion().WithResource("configmaps"), configMaps.GroupVersion().WithResource("configmap"), meta.RESTScopeNamespace)

	h.Reconciler = &Reconciler{
		Client: h.client, Live: h.client, Reader: h.cached, Mapper: mapper, Composed: &discovery.Kinds{},
		Policies: &gates.PolicyGates{Reader: h.cached, Compiled: policy.NewCache()}, Gate: gate.Options{MaxOpen: time.Hour},
		Every: time.Minute, Now: func() time.Time { return h.now },
	}
	h.Reconciler.Composed.Set(discovery.Findings{Revisions: map[string]bool{"runs-1": true}, Complete: true}, nil, []kind.Served{})
	h.watch(t, texts...)

	return h
}

// watch has other objects watched.
func (h *harness) watch(t *testing.T, texts ...string) {
	t.Helper()

	var out watched
	for _, text := range texts {
		out.objects = append(out.objects, *fixture.Parse(t, text))
	}

	h.Reconciler.Watched = out
}

func kindOf(obj runtime.Object) string {
	switch o := obj.(type) {
	case *openreports.Report:
		return openreport.KindReport
	case *openreports.ClusterReport:
		return openreport.KindClusterReport
	default:
		return o.GetObjectKind().GroupVersionKind().Kind
	}
}

// run reconciles once, and returns what it asked of the API server.
func (h *harness) run(t *testing.T) (reconcile.Result, []string, error) {
	t.Helper()

	h.calls = nil
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { h.logged = append(h.logged, args) }, funcr.Options{}))
	result, err := h.Reconciler.Reconcile(ctx, reconcile.Request{})

	return result, h.calls, err
}

// reports are those that are there, as NAMESPACE/NAME: POLICY OBJECT@SECONDS...
func (h *harness) reports(t *testing.T) []string {
	t.Helper()

	cluster, reports := &openreports.ClusterReportList{}, &openreports.ReportList{}
	for _, list := range []client.ObjectList{cluster, reports} {
		if err := h.client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}

	var out []string

	text := func(o openreport.Object) {
		var line strings.Builder

		line.WriteString(o.GetNamespace() + "/" + o.GetName() + ":")

		for _, r := range openreport.Results(o) {
			name := r.Subjects[0].Name
			if name == "" {
				name = r.Subjects[0].Kind
			}

			fmt.Fprintf(&line, " %s %s@%d", r.Policy, name, r.Timestamp.Seconds-time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC).Unix())
		}

		out = append(out, line.String())
	}

	for i := range cluster.Items {
		text(&cluster.Items[i])
	}

	for i := range reports.Items {
		text(&reports.Items[i])
	}

	return out
}

// expect fails where a run did something else than it is to, or left something else.
func (h *harness) expect(t *testing.T, why string, calls, reports []string) reconcile.Result {
	t.Helper()

	result, got, err := h.run(t)
	if err != nil {
		t.Fatalf("%s\n%v", why, err)
	}

	if diff := cmp.Diff(calls, got); diff != "" {
		t.Errorf("%s\ncalls, -want, +got:\n%s", why, diff)
	}

	if diff := cmp.Diff(reports, h.reports(t)); diff != "" {
		t.Errorf("%s\nReports, -want, +got:\n%s", why, diff)
	}

	return result
}

// TestReportsFollowWhatIsFound and nothing is written while nothing changes.
func TestReportsFollowWhatIsFound(t *testing.T) {
	h := newHarness(t, edited, xr)
	cluster := "/kausality: kind-not-governed ConfigMap@0"
	team := "team-a/kausality: stored-not-allowed db@0"

	if got := h.expect(t, "They are created.", []string{"create Report", "create ClusterReport"}, []string{cluster, team}); got.RequeueAfter != time.Minute {
		t.Errorf("it goes on after %s", got.RequeueAfter)
	}

	h.now = h.now.Add(time.Hour)
	h.expect(t, "Nothing changed: nothing is read or written.", nil, []string{cluster, team})

	// Another replica leads, and knows nothing of what was written.
	h.Reconciler.kept = nil
	h.expect(t, "What is there is read, and not written.", []string{"get Report", "get ClusterReport"}, []string{cluster, team})

	h.watch(t, edited, xr, orphan)
	h.expect(t, "What comes has its own time, and the rest keeps its.", []string{"get ClusterReport", "patch ClusterReport"},
		[]string{"/kausality: owner-gone db-1@3600 kind-not-governed ConfigMap@0", team})

	fresh := strings.Replace(orphan, "uid: mr", "uid: mr, creationTimestamp: '2026-03-05T12:59:00Z'", 1)
	h.watch(t, edited, xr, fresh)
	h.expect(t, "Of what was made just now the owner may not be known yet.", []string{"get ClusterReport", "patch ClusterReport"}, []string{cluster, team})

	h.watch(t, edited, xr, orphan)
	h.expect(t, "It is said once that is long ago.", []string{"get ClusterReport", "patch ClusterReport"},
		[]string{"/kausality: owner-gone db-1@3600 kind-not-governed ConfigMap@0", team})

	h.watch(t, asAsked, xr)
	h.expect(t, "What is gone goes; one for which nothing is left is deleted.", []string{"get ClusterReport", "patch ClusterReport", "delete Report"}, []string{cluster})

	h.watch(t)
	h.expect(t, "And so is the last.", []string{"delete ClusterReport"}, nil)
	h.expect(t, "Once.", nil, nil)
}

// TestWhatMattersToANamespaceThatIsGoneIsReportedOfTheCluster as an XR may outlive its Claim.
func TestWhatMattersToANamespaceThatIsGoneIsReportedOfTheCluster(t *testing.T) {
	h := newHarness(t, strings.Replace(xr, "runs-1", "plain-1", 1), strings.ReplaceAll(edited, "team-a", "team-b"))
	h.Reconciler.Composed.Set(discovery.Findings{Revisions: map[string]bool{"plain-1": false}, Complete: true}, nil, []kind.Served{})
	h.gone = []string{"team-a"}

	want := []string{"/kausality: function-missing db-x@0", "team-b/kausality: stored-not-allowed db@0"}
	h.expect(t, "It is reported all the same.", []string{"create Report", "create Report", "create ClusterReport"}, want)
	h.expect(t, "Nothing else is read or written for that.", []string{"create Report"}, want)

	h.watch(t)
	h.expect(t, "It goes with what it is about.", []string{"delete ClusterReport", "delete Report"}, nil)
}

// TestReportsThatOthersChangeAreRestored and those of others stay.
func TestReportsThatOthersChangeAreRestored(t *testing.T) {
	h := newHarness(t, edited)
	team := []string{"team-a/kausality: stored-not-allowed db@0"}
	h.expect(t, "It is created.", []string{"create Report"}, team)

	report := &openreports.Report{}
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: Name}, report); err != nil {
		t.Fatal(err)
	}

	report.Results[0].Description = "all is well"
	if err := h.client.Update(t.Context(), report); err != nil {
		t.Fatal(err)
	}

	h.now = h.now.Add(time.Hour)
	h.expect(t, "What somebody wrote is put right.", []string{"get Report", "patch Report"}, team)

	if err := h.client.Delete(t.Context(), report); err != nil {
		t.Fatal(err)
	}

	h.expect(t, "One that somebody deleted comes back.", []string{"create Report"}, []string{"team-a/kausality: stored-not-allowed db@3600"})

	for _, other := range []client.Object{
		&openreports.Report{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "kausality-audit", Labels: map[string]string{openreport.LabelManagedBy: "kubectl-kausality"}}},
		&openreports.Report{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "kausality-a", Labels: map[string]string{openreport.LabelManagedBy: ManagedBy}}},
	} {
		if err := h.client.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}

	h.expect(t, "Those of the command, and those of another name, are somebody else's.", nil,
		[]string{"team-a/kausality: stored-not-allowed db@3600", "team-b/kausality-a:", "team-b/kausality-audit:"})
}

// TestNothingHappensWithoutOpenReports and what is installed later is noticed.
func TestNothingHappensWithoutOpenReports(t *testing.T) {
	h := newHarness(t, edited)

	remove := func() {
		if err := h.cached.Delete(t.Context(), crd(openreport.CRDReports)); err != nil {
			t.Fatal(err)
		}
	}
	remove()

	if got := h.expect(t, "There are no CRDs.", nil, nil); got.RequeueAfter != 0 {
		t.Errorf("it asks again after %s", got.RequeueAfter)
	}

	if err := h.cached.Create(t.Context(), crd(openreport.CRDReports)); err != nil {
		t.Fatal(err)
	}

	h.listing = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: openreports.GroupName, Kind: openreport.KindReport}}
	if got, _, err := h.run(t); err != nil || got.RequeueAfter != time.Minute {
		t.Errorf("CRDs that are not served yet: %v, %v", got, err)
	}

	h.listing = nil
	h.expect(t, "They came.", []string{"create Report"}, []string{"team-a/kausality: stored-not-allowed db@0"})

	remove()

	h.listing = apierrors.NewNotFound(schema.GroupResource{Group: openreports.GroupName, Resource: "reports"}, "")
	if got, calls, err := h.run(t); err != nil || got.RequeueAfter != 0 || len(calls) > 0 || h.Reconciler.kept != nil {
		t.Errorf("CRDs that went: %v, %v, %v", got, calls, err)
	}

	if len(h.logged) > 0 {
		t.Errorf("it logged %v", h.logged)
	}
}

// TestAWriteThatFailsIsTriedAgain each in its way.
func TestAWriteThatFailsIsTriedAgain(t *testing.T) {
	reports := schema.GroupResource{Group: openreports.GroupName, Resource: "reports"}
	conflict, exists := apierrors.NewConflict(reports, Name, nil), apierrors.NewAlreadyExists(reports, Name)

	cases := map[string]struct {
		reason string
		fail   error
		after  time.Duration
		err    error
		late   bool
		logs   int
	}{
		"Conflict":  {reason: "A conflict is to be tried again silently.", fail: conflict, err: conflict, late: true},
		"Exists":    {reason: "So is what somebody else created meanwhile.", fail: exists, err: exists, late: true},
		"Gone":      {reason: "What is gone is written the next time.", fail: apierrors.NewNotFound(reports, Name), after: time.Minute},
		"Forbidden": {reason: "A right that is missing is logged, and not each time.", fail: apierrors.NewForbidden(reports, Name, errors.New("no")), after: time.Minute, logs: 1},
		"Refused":   {reason: "What is refused is an error.", fail: fixture.ErrRefused, err: fixture.ErrRefused},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, edited)

			for range 2 {
				h.fail = tc.fail

				got, _, err := h.run(t)
				if !errors.Is(err, tc.err) || object.Outdated(err) != tc.late || got.RequeueAfter != tc.after {
					t.Errorf("%s\n%v, %v", tc.reason, got, err)
				}
			}

			if len(h.logged) != tc.logs {
				t.Errorf("%s\nlogged %v", tc.reason, h.logged)
			}

			h.expect(t, "Then it is written.", []string{"create Report"}, []string{"team-a/kausality: stored-not-allowed db@0"})
		})
	}
}

func TestOneReportThatCannotBeWrittenDoesNotKeepTheOthersFromIt(t *testing.T) {
	h := newHarness(t, edited, xr)
	h.fail = fixture.ErrRefused // Of the first, that of the namespace.

	if _, _, err := h.run(t); !errors.Is(err, fixture.ErrRefused) {
		t.Errorf("got %v", err)
	}

	if diff := cmp.Diff([]string{"/kausality: kind-not-governed ConfigMap@0"}, h.reports(t)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestWhatIsNotKnownYetIsWaitedFor but not for ever, and then nothing is deleted.
func TestWhatIsNotKnownYetIsWaitedFor(t *testing.T) {
	h := newHarness(t, edited)
	team := "team-a/kausality: stored-not-allowed db@0"
	h.expect(t, "It is created.", []string{"create Report"}, []string{team})

	instances := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Instance"}
	h.now = h.now.Add(time.Hour)
	h.Reconciler.Watched = watched{unknown: []schema.GroupVersionKind{instances}}

	if got := h.expect(t, "It waits.", nil, []string{team}); got.RequeueAfter != soon {
		t.Errorf("it looks again after %s", got.RequeueAfter)
	}

	h.now = h.now.Add(settle)
	h.expect(t, "A kind that cannot be listed is said, and what was there stays.", []string{"create ClusterReport"},
		[]string{"/kausality: unread Instance.example.org@3660", team})

	h.Reconciler.Watched = watched{err: fixture.ErrBroken, objects: []unstructured.Unstructured{*fixture.Parse(t, edited)}}
	if _, _, err := h.run(t); !errors.Is(err, fixture.ErrBroken) {
		t.Errorf("a cache that fails: %v", err)
	}
}

// TestWhatIsSaidOfKindsStaysWhileTheyAreLookedAtAgain as they are whenever an XRD comes.
func TestWhatIsSaidOfKindsStaysWhileTheyAreLookedAtAgain(t *testing.T) {
	h := newHarness(t, xr)
	want := []string{"/kausality: kind-not-governed ConfigMap@0"}
	h.expect(t, "It is created.", []string{"create ClusterReport"}, want)

	h.now = h.now.Add(time.Hour)
	h.Reconciler.Composed.Set(discovery.Findings{Revisions: map[string]bool{"runs-1": true}}, nil, []kind.Served{})
	h.expect(t, "What kinds are is not known.", nil, want)

	h.now = h.now.Add(time.Second)
	h.Reconciler.Composed.Set(discovery.Findings{Revisions: map[string]bool{"runs-1": true}, Complete: true}, nil, []kind.Served{})
	h.expect(t, "It is, and nothing changed.", nil, want)
}

// TestWhatIsAskedForIsReportedToo beside what is found on objects.
func TestWhatIsAskedForIsReportedToo(t *testing.T) {
	h := newHarness(t, edited, xr)

	if err := h.cached.Create(t.Context(), &v1alpha1.Enforcement{
		ObjectMeta: metav1.ObjectMeta{Name: "e", Generation: 1},
		Spec:       v1alpha1.EnforcementSpec{ValidationActions: []v1alpha1.ValidationAction{v1alpha1.ActionWarn}},
	}); err != nil {
		t.Fatal(err)
	}

	h.expect(t, "It is reported for the cluster.", []string{"create Report", "create ClusterReport"},
		[]string{"/kausality: kind-not-governed ConfigMap@0 not-ready e@0 warn-only e@0", "team-a/kausality: stored-not-allowed db@0"})
}

func TestTheControllerWatchesTheCRDs(t *testing.T) {
	h := newHarness(t)
	if _, err := h.Reconciler.Controller(&fixture.Cache{FakeInformers: &informertest.FakeInformers{Scheme: scheme(t)}}, logr.Discard()); err != nil {
		t.Error(err)
	}
}
