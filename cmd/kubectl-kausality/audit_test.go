// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

const (
	auditedXR = `
apiVersion: shop.example.org/v1
kind: XDatabase
metadata: {name: db-x, uid: xr}
spec:
  claimRef: {apiVersion: shop.example.org/v1, kind: Database, namespace: team-a, name: db}
  compositionRevisionRef: {name: runs-1}
  resourceRefs: [{apiVersion: rds.example.org/v1, kind: Instance, name: db-1}]
status:
  conditions:
  - {type: Kausality, status: "False", reason: Held, lastTransitionTime: "2026-03-05T10:00:00Z",
     message: "generation 3: 1 pending; 1 held: spec.forProvider.size of Instance db-1 (1 → 2); nobody asked for it"}
  - {type: KausalityState, status: "False", reason: Held, message: '{"v":1,"progress":{"phase":"Settled"},"changes":[{"ref":{"apiVersion":"rds.example.org/v1","kind":"Instance","name":"db-1"},"field":"spec.forProvider.size","from":"1","to":"2","missing":"nobody asked for it"}]}'}`

	auditedRevision = `
apiVersion: apiextensions.crossplane.io/v1
kind: CompositionRevision
metadata: {name: runs-1}
spec: {compositeTypeRef: {apiVersion: shop.example.org/v1, kind: XDatabase}, pipeline: [{functionRef: {name: function-kausality}}]}`

	auditedInstance = `
apiVersion: rds.example.org/v1
kind: Instance
metadata:
  name: db-1
  uid: mr
  generation: 3
  ownerReferences: [{apiVersion: shop.example.org/v1, kind: XDatabase, name: db-x, uid: xr, controller: true}]
  annotations:
    kausality.io/gate: '{v: 1, state: Open, actions: [Update], generation: 3, since: 2026-03-05T10:30:00Z}'
spec: {managementPolicies: [Observe, Update], forProvider: {size: 2}}`

	auditedEdit = `
apiVersion: shop.example.org/v1
kind: Database
metadata:
  name: other
  namespace: team-b
  annotations: {kausality.io/held: '[{field: spec.size, from: small, cause: {type: Edit, user: anna, since: 2026-03-04T00:00:00Z}, stored: {}}]'}
spec: {resourceRef: {apiVersion: shop.example.org/v1, kind: XDatabase, name: db-y}}`
)

// auditedAt is when the tests look.
func auditedAt() time.Time { return time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC) }

// auditedKinds is what discovery lists.
type auditedKinds struct {
	discovery.CachedDiscoveryInterface

	lists []*metav1.APIResourceList
	err   error
}

func (l auditedKinds) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	return l.lists, l.err
}

func (auditedKinds) ServerVersion() (*apiversion.Info, error) { return &apiversion.Info{}, nil }

// auditedCluster serves Kausality's kinds, those of a platform, and OpenReports' if wanted.
func auditedCluster(t *testing.T, reports bool, texts ...string) (*cluster, *dynamicfake.FakeDynamicClient) {
	t.Helper()

	mapper := meta.NewDefaultRESTMapper(nil)
	kinds := map[schema.GroupVersionResource]string{}
	groups := map[schema.GroupVersion]*metav1.APIResourceList{}

	add := func(group, version, kind, plural string, scope meta.RESTScope, categories ...string) {
		gv := schema.GroupVersion{Group: group, Version: version}
		mapper.AddSpecific(gv.WithKind(kind), gv.WithResource(plural), gv.WithResource(strings.ToLower(kind)), scope)

		kinds[gv.WithResource(plural)] = kind + "List"

		if groups[gv] == nil {
			groups[gv] = &metav1.APIResourceList{GroupVersion: gv.String()}
		}

		groups[gv].APIResources = append(groups[gv].APIResources, metav1.APIResource{
			Name: plural, Kind: kind, Namespaced: scope == meta.RESTScopeNamespace, Categories: categories, Verbs: metav1.Verbs{"get", "list", "update"},
		})
	}

	add("shop.example.org", "v1", "Database", "databases", meta.RESTScopeNamespace, "claim")
	add("shop.example.org", "v1", "XDatabase", "xdatabases", meta.RESTScopeRoot, "composite")
	add("rds.example.org", "v1", "Instance", "instances", meta.RESTScopeRoot, "managed")
	add("other.example.org", "v1", "Vault", "vaults", meta.RESTScopeRoot, "managed")
	add("", "v1", "Secret", "secrets", meta.RESTScopeNamespace)
	add("", "v1", "Pod", "pods", meta.RESTScopeNamespace)
	add("apps", "v1", "Deployment", "deployments", meta.RESTScopeNamespace)
	add("apiextensions.crossplane.io", "v1", "CompositionRevision", "compositionrevisions", meta.RESTScopeRoot)
	add("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", meta.RESTScopeRoot)
	add("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", meta.RESTScopeRoot)
	add("kausality.io", "v1alpha1", "AllowancePolicy", "allowancepolicies", meta.RESTScopeRoot)
	add("kausality.io", "v1alpha1", "UpgradeAllowance", "upgradeallowances", meta.RESTScopeRoot)
	add("kausality.io", "v1alpha1", "Enforcement", "enforcements", meta.RESTScopeRoot)
	add("kausality.io", "v1alpha1", "AllowanceBinding", "allowancebindings", meta.RESTScopeNamespace)

	if reports {
		add("openreports.io", "v1alpha1", "Report", "reports", meta.RESTScopeNamespace)
		add("openreports.io", "v1alpha1", "ClusterReport", "clusterreports", meta.RESTScopeRoot)
	}

	objects := make([]runtime.Object, len(texts))
	for i, text := range texts {
		objects[i] = parse(t, text)
	}

	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)

	// The fake applies to what is there, and the API server also to what is not.
	client.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		apply, ok := a.(clienttesting.PatchActionImpl)
		if !ok || apply.GetPatchType() != types.ApplyPatchType {
			return false, nil, nil
		}

		u := parse(t, string(apply.GetPatch()))
		u.SetUID("applied")

		err := client.Tracker().Create(apply.GetResource(), u, apply.GetNamespace())
		if apierrors.IsAlreadyExists(err) {
			err = client.Tracker().Update(apply.GetResource(), u, apply.GetNamespace())
		}

		return true, u, err
	})

	var found auditedKinds
	for _, list := range groups {
		found.lists = append(found.lists, list)
	}

	return &cluster{client: client, mapper: mapper, discovery: found, home: "kausality-system"}, client
}

// auditOf runs the command on a cluster, and returns what it prints as JSON.
func auditOf(t *testing.T, c *cluster, opts auditOptions) (auditDocument, error) {
	t.Helper()

	var out, shown bytes.Buffer

	opts.format, opts.objects, opts.functions = formatJSON, true, []string{functionKausality}
	err := runAudit(t.Context(), c, &out, &progress{out: &shown, now: auditedAt}, opts, auditedAt())

	doc := auditDocument{}
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
	}

	return doc, err
}

// found are findings as RULE NAMESPACE OBJECT: MESSAGE.
func found(doc auditDocument) []string {
	out := make([]string, 0, len(doc.Findings))
	for _, f := range doc.Findings {
		out = append(out, fmt.Sprintf("%s %s %s: %s", f.Rule, f.Namespace, f.Object, f.Message))
	}

	return out
}

const (
	foundEdit = "stored-not-allowed team-b Database team-b/other: spec.size was saved by anna at 2026-03-04T00:00:00Z, and was small"
	foundHeld = "held team-a XDatabase db-x: spec.forProvider.size of Instance db-1 (1 → 2); nobody asked for it"
	foundOpen = "gate-overdue team-a Instance db-1: its gate is open since 2026-03-05T10:30:00Z: Synced= "
)

func TestAuditFindsWhatIsNotAsAskedFor(t *testing.T) {
	t.Parallel()

	all := []string{auditedXR, auditedRevision, auditedInstance, auditedEdit}

	cases := map[string]struct {
		reason    string
		objects   []string
		namespace string
		opts      auditOptions
		refuse    string
		unlisted  error
		want      []string
		looked    int
		err       error
	}{
		"Nothing": {reason: "A cluster without anything is as it was asked for."},
		"All": {
			reason: "All of it is found; what policies name nothing of is not looked at.", objects: all,
			want: []string{foundEdit, foundHeld, foundOpen}, looked: 3, err: errFinding,
		},
		"Team": {
			reason: "What belongs to a Claim is its namespace's, wherever it is.", objects: all, namespace: "team-a",
			want: []string{foundHeld, foundOpen}, looked: 2, err: errFinding,
		},
		"OtherTeam": {reason: "Others do not matter.", objects: all, namespace: "team-b", want: []string{foundEdit}, looked: 3, err: errFinding},
		"Longer": {
			reason: "What is held for less is left out.", objects: all, opts: auditOptions{heldLonger: 24 * time.Hour, maxOpen: 3 * time.Hour},
			want: []string{
				foundEdit, "gate-open team-a Instance db-1: its gate is open for Update since 2026-03-05T10:30:00Z",
			}, looked: 3, err: errFinding,
		},
		"Orphan": {
			reason: "An owner that was not listed is looked for.", objects: []string{
				auditedRevision, strings.ReplaceAll(auditedXR, "uid: xr", "uid: new"), auditedInstance,
			},
			opts: auditOptions{heldLonger: 24 * time.Hour, maxOpen: 3 * time.Hour},
			want: []string{
				"owner-gone  Instance db-1: its owner XDatabase db-x is gone",
				"gate-open  Instance db-1: its gate is open for Update since 2026-03-05T10:30:00Z",
			}, looked: 2, err: errFinding,
		},
		"Refused": {
			reason: "What may not be read is said, and all else looked at.", objects: all, refuse: "instances",
			want: []string{foundEdit, foundHeld, `unread  instances.rds.example.org: cannot look at instances.rds.example.org: instances is forbidden: no`}, looked: 2,
			err: errFinding,
		},
		"RefusedPolicies": {
			reason: "So it is of what policies say.", refuse: "enforcements",
			want: []string{`unread  enforcements.kausality.io: cannot look at enforcements.kausality.io: enforcements is forbidden: no`}, err: errFinding,
		},
		"RefusedRecords": {
			reason: "And of what was left outside.", refuse: "secrets",
			want: []string{`unread  secrets: cannot look at secrets: secrets is forbidden: no`}, err: errFinding,
		},
		"Unlisted": {
			reason: "A group that cannot be listed is said, too.",
			unlisted: &discovery.ErrGroupDiscoveryFailed{
				Groups: map[schema.GroupVersion]error{{Group: "down.example.org", Version: "v1"}: errUnserved},
			},
			want: []string{"unread  down.example.org/v1: cannot look at down.example.org/v1: " + errUnserved.Error()}, err: errFinding,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, client := auditedCluster(t, false, tc.objects...)
			c.namespace = tc.namespace

			if d, ok := c.discovery.(auditedKinds); ok {
				d.err = tc.unlisted
				c.discovery = d
			}

			client.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if a.GetResource().Resource != tc.refuse {
					return false, nil, nil
				}

				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: tc.refuse}, "", errors.New("no"))
			})

			doc, err := auditOf(t, c, tc.opts)
			if !errors.Is(err, tc.err) || err != nil && tc.err == nil {
				t.Fatalf("%s\nerror %v, want %v", tc.reason, err, tc.err)
			}

			if diff := cmp.Diff(tc.want, found(doc), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			if doc.Objects != tc.looked {
				t.Errorf("%s\n%d objects were looked at, want %d", tc.reason, doc.Objects, tc.looked)
			}

			for _, a := range client.Actions() {
				if a.GetResource().Resource == "vaults" || a.GetResource().Resource == "pods" || a.GetVerb() != "list" && a.GetVerb() != "get" {
					t.Errorf("%s\n%s %s", tc.reason, a.GetVerb(), a.GetResource().Resource)
				}
			}
		})
	}
}

// TestAuditReadsForPeople what it found, by what it comes to.
func TestAuditReadsForPeople(t *testing.T) {
	t.Parallel()

	c, _ := auditedCluster(t, false, auditedXR, auditedRevision, auditedInstance, auditedEdit)

	var out bytes.Buffer

	err := runAudit(t.Context(), c, &out, newProgress(&out), auditOptions{functions: []string{functionKausality}}, auditedAt())
	if !errors.Is(err, errFinding) || exitCode(err) != exitFinding {
		t.Fatal(err)
	}

	want := `Not as asked for:
- HIGH: Database team-b/other (stored-not-allowed, since 2026-03-04T00:00:00Z (36h)): spec.size was
  saved by anna at 2026-03-04T00:00:00Z, and was small
    why: its value is in force, and nobody asked for it who may
    remedy: take it back, or have it stored again by who may: kubectl kausality trace
      Database.shop.example.org/other -n team-b says which

Waits for somebody:
- LOW: XDatabase db-x (held, since 2026-03-05T10:00:00Z (120m)): spec.forProvider.size of Instance
  db-1 (1 → 2); nobody asked for it
    why: somebody asked for it, or a Composition wants it, and it waits
    remedy: have it asked for by who may, or take it back: kubectl kausality trace
      XDatabase.shop.example.org/db-x says what it lacks

Can change without anybody having asked:
- HIGH: Instance db-1 (gate-overdue, since 2026-03-05T10:30:00Z (90m)): its gate is open since
  2026-03-05T10:30:00Z: Synced= 
    why: whatever its spec says is applied meanwhile
    remedy: see why its provider does not apply the change: kubectl describe it

2 high, 1 medium, 0 low, 0 info; 3 objects of 3 kinds were looked at
`
	if diff := cmp.Diff(strings.Replace(want, "1 medium, 0 low", "0 medium, 1 low", 1), out.String()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// reportsOf are the Reports there are, as NAMESPACE/NAME: POLICY@TIME...
func reportsOf(t *testing.T, client *dynamicfake.FakeDynamicClient) []string {
	t.Helper()

	var out []string

	for _, plural := range []string{"clusterreports", "reports"} {
		list, err := client.Resource(schema.GroupVersionResource{Group: "openreports.io", Version: "v1alpha1", Resource: plural}).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}

		for _, u := range list.Items {
			var text strings.Builder

			text.WriteString(u.GetNamespace() + "/" + u.GetName() + ":")

			results, _, _ := unstructured.NestedSlice(u.Object, "results")
			for _, r := range results {
				m, _ := r.(map[string]any)
				seconds, _, _ := unstructured.NestedInt64(m, "timestamp", "seconds")
				fmt.Fprintf(&text, " %s@%d", m["policy"], seconds-auditedAt().Unix())
			}

			out = append(out, text.String())
		}
	}

	return out
}

func TestAuditWritesReports(t *testing.T) {
	t.Parallel()

	const (
		earlier = `
apiVersion: openreports.io/v1alpha1
kind: Report
metadata: {name: kausality-audit, namespace: %s, uid: r, labels: {app.kubernetes.io/managed-by: kubectl-kausality}}
source: kausality-audit
results: [{policy: stored-not-allowed, source: kausality-audit, timestamp: {seconds: 1772600000, nanos: 0},
  resources: [{apiVersion: shop.example.org/v1, kind: Database, namespace: team-b, name: other}]}]`
		foreign = `
apiVersion: openreports.io/v1alpha1
kind: Report
metadata: {name: kausality, namespace: team-c, labels: {app.kubernetes.io/managed-by: kausality-manager}}`
	)

	before := 1772600000 - auditedAt().Unix()
	all := []string{auditedXR, auditedRevision, auditedInstance, auditedEdit, foreign}

	cases := map[string]struct {
		reason    string
		objects   []string
		dry       string
		namespace string
		refuse    string
		gone      string
		want      []string
		written   []string
	}{
		"New": {
			reason: "Each namespace gets one, and those of others stay.", objects: all,
			want: []string{
				"team-a/kausality-audit: gate-overdue@0 held@0", "team-b/kausality-audit: stored-not-allowed@0", "team-c/kausality:",
			},
			written: []string{"team-a", "team-b"},
		},
		"Seen": {
			reason: "What was seen before keeps its time.", objects: append(all, fmt.Sprintf(earlier, "team-b")),
			want: []string{
				"team-a/kausality-audit: gate-overdue@0 held@0", fmt.Sprintf("team-b/kausality-audit: stored-not-allowed@%d", before), "team-c/kausality:",
			},
			written: []string{"team-a", "team-b"},
		},
		"Left": {
			reason: "One for which nothing is left goes.", objects: []string{auditedRevision, fmt.Sprintf(earlier, "team-d"), foreign},
			want: []string{"team-c/kausality:"}, written: []string{"team-d deleted"},
		},
		"Unread": {
			reason:  "It stays where not all could be looked at.",
			objects: []string{auditedRevision, fmt.Sprintf(earlier, "team-d"), foreign}, refuse: "databases",
			want:    []string{"/kausality-audit: unread@0", "team-c/kausality:", fmt.Sprintf("team-d/kausality-audit: stored-not-allowed@%d", before)},
			written: []string{""},
		},
		"Elsewhere": {
			reason:  "Of a namespace that was not looked at nothing is known.",
			objects: []string{auditedRevision, fmt.Sprintf(earlier, "team-d"), foreign}, namespace: "team-a",
			want: []string{"team-c/kausality:", fmt.Sprintf("team-d/kausality-audit: stored-not-allowed@%d", before)},
		},
		"NamespaceGone": {
			reason: "What matters to a namespace that is gone is reported of the cluster.", objects: all, gone: "team-a",
			want: []string{
				"/kausality-audit: gate-overdue@0 held@0", "team-b/kausality-audit: stored-not-allowed@0", "team-c/kausality:",
			},
			written: []string{"team-b", ""},
		},
		"DryRun": {
			reason: "Nothing is sent to see what would be.", objects: append(all, fmt.Sprintf(earlier, "team-d")), dry: dryClient,
			want:    []string{"team-c/kausality:", fmt.Sprintf("team-d/kausality-audit: stored-not-allowed@%d", before)},
			written: []string{"team-a", "team-b", "team-d deleted"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, client := auditedCluster(t, true, tc.objects...)
			c.dry, c.namespace = dryRun{mode: tc.dry}, tc.namespace

			client.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
				return a.GetResource().Resource == tc.refuse, nil, apierrors.NewForbidden(schema.GroupResource{Resource: tc.refuse}, "", errors.New("no"))
			})

			client.PrependReactor("patch", "reports", func(a clienttesting.Action) (bool, runtime.Object, error) {
				return a.GetNamespace() == tc.gone, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, tc.gone)
			})

			doc, err := auditOf(t, c, auditOptions{report: true})
			if err != nil && !errors.Is(err, errFinding) {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, reportsOf(t, client)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			var written []string

			for _, r := range doc.Reports {
				text := r.Namespace
				if r.Deleted {
					text += " deleted"
				}

				written = append(written, text)
			}

			if diff := cmp.Diff(tc.written, written); diff != "" {
				t.Errorf("%s\nwritten, -want, +got:\n%s", tc.reason, diff)
			}

			if tc.dry != "" {
				return
			}

			// A second time there is nothing to write.
			c.written = nil

			again, err := auditOf(t, c, auditOptions{report: true})
			if err != nil && !errors.Is(err, errFinding) || len(again.Reports) > 0 {
				t.Errorf("%s\nonce more: %v, %v", tc.reason, again.Reports, err)
			}
		})
	}
}

func TestAuditSaysWhatReportsNeed(t *testing.T) {
	t.Parallel()

	c, _ := auditedCluster(t, false)
	if _, err := auditOf(t, c, auditOptions{report: true}); !errors.Is(err, errNoReports) {
		t.Errorf("got %v", err)
	}
}

// TestProgressIsShownWhereSomebodyWaits for longer than a moment, and is gone at the end.
func TestProgressIsShownWhereSomebodyWaits(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer

	at := auditedAt()
	p := &progress{out: &out, now: func() time.Time { return at }}

	p.showf("one")
	p.done()

	if out.Len() > 0 {
		t.Errorf("at once: %q", out.String())
	}

	at = at.Add(patienceProgress)
	p.showf("%d of %d", 2, 3)
	p.showf("too soon")

	at = at.Add(patienceProgress)
	p.showf("three")
	p.done()

	if want := clearLine + "2 of 3" + clearLine + "three" + clearLine; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}

	if got := newProgress(&out); got.out == &out {
		t.Error("what is no terminal gets no progress")
	}
}

// TestAnAuditIsInPages so that a cluster of any size fits.
func TestAnAuditIsInPages(t *testing.T) {
	t.Parallel()

	c, client := auditedCluster(t, false, auditedRevision, auditedXR)
	c.namespace = "team-b"

	var limits []int64

	client.PrependReactor("list", "databases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		list, ok := a.(clienttesting.ListActionImpl)
		if !ok {
			return false, nil, nil
		}

		limits = append(limits, list.GetListOptions().Limit)

		out := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*parse(t, auditedEdit)}}
		out.SetGroupVersionKind(schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: "DatabaseList"})

		if list.GetListOptions().Continue == "" {
			out.SetContinue("more")
		}

		return true, out, nil
	})

	doc, err := auditOf(t, c, auditOptions{})
	if !errors.Is(err, errFinding) || doc.Objects != 3 {
		t.Errorf("%d objects, %v", doc.Objects, err)
	}

	if diff := cmp.Diff([]int64{500, 500}, limits); diff != "" {
		t.Errorf("limits, -want, +got:\n%s", diff)
	}
}

// TestReportsGoWithKausality those of the manager and of the command, and none of others.
func TestReportsGoWithKausality(t *testing.T) {
	t.Parallel()

	report := func(kind, metadata string) string {
		return "{apiVersion: openreports.io/v1alpha1, kind: " + kind + ", metadata: {" + metadata + "}}"
	}

	c, _ := auditedCluster(t, true,
		report("Report", "name: kausality, namespace: team-a, labels: {app.kubernetes.io/managed-by: kausality-manager}"),
		report("Report", "name: kausality-audit, namespace: team-a, labels: {app.kubernetes.io/managed-by: kubectl-kausality}"),
		report("Report", "name: other, namespace: team-a, labels: {app.kubernetes.io/managed-by: kyverno}"),
		report("ClusterReport", "name: kausality, labels: {app.kubernetes.io/managed-by: kausality-manager}"))

	list, err := uninstallation{c}.reports(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	got := make([]string, 0, len(list))
	for _, n := range list {
		got = append(got, n.gvk.Kind+" "+path(n.namespace, n.name))
	}

	if diff := cmp.Diff([]string{"Report team-a/kausality", "Report team-a/kausality-audit", "ClusterReport kausality"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	without, _ := auditedCluster(t, false)
	if list, err := (uninstallation{without}).reports(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("without OpenReports: %v, %v", list, err)
	}
}

// errUnserved is why a group cannot be listed.
var errUnserved = errors.New("nothing serves it")
