// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// manifest decodes YAML.
func manifest(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()

	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}

	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		tb.Fatal(err)
	}

	return u
}

// denying is an Enforcement of everything, and a policy of nothing in
// particular.
func denying(tb testing.TB) *cluster {
	tb.Helper()

	c := &cluster{
		policies:     make([]v1alpha1.AllowancePolicy, 1),
		enforcements: make([]v1alpha1.Enforcement, 1),
	}

	for text, into := range map[string]any{
		`{metadata: {name: all}, spec: {match: {resourceRules: [{apiGroups: ["*"], resources: ["*"]}]}, validationActions: [Deny]}}`:                    &c.enforcements[0],
		`{metadata: {name: sets}, spec: {match: {kind: Deployment, fields: [spec.replicas]}, allow: [{kind: ReplicaSet, mutations: [spec.replicas]}]}}`: &c.policies[0],
	} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			tb.Fatal(err)
		}
	}

	return c
}

const (
	replicaSet = `
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-1
  namespace: shop
  uid: rs
  generation: 3
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]
spec: {replicas: 1}
`
	deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: d
  generation: 4
  resourceVersion: "20"
  annotations:
    kausality.io/initialized: '{"v":1}'
    kausality.io/allowances: |
      [{kind: ReplicaSet, mutation: spec.replicas, generation: 4, initiator: hans, policy: sets, id: '4.0', source: {type: Policy, name: sets, field: spec.replicas}, trace: [{kind: Deployment, name: web, generation: 4, field: spec.replicas}]}]
spec: {replicas: 2}
status: {observedGeneration: 3}
`
)

const controller = "system:serviceaccount:kube-system:deployment-controller"

// scaled is the ReplicaSet with other replicas.
func scaled(tb testing.TB, set string) *admissionv1.AdmissionRequest {
	tb.Helper()

	obj := manifest(tb, set)
	if err := unstructured.SetNestedField(obj.Object, int64(2), "spec", "replicas"); err != nil {
		tb.Fatal(err)
	}

	return update(tb, manifest(tb, set), obj, controller)
}

func update(tb testing.TB, old, obj *unstructured.Unstructured, user string) *admissionv1.AdmissionRequest {
	tb.Helper()

	gvk := old.GroupVersionKind()

	return &admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Update,
		Kind:     metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		Resource: metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: strings.ToLower(gvk.Kind) + "s"},
		Name:     old.GetName(), Namespace: old.GetNamespace(),
		UserInfo:  authenticationv1.UserInfo{Username: user},
		Object:    runtime.RawExtension{Raw: encode(tb, obj)},
		OldObject: runtime.RawExtension{Raw: encode(tb, old)},
	}
}

// through puts a request to both endpoints, and returns the answer of the first
// that refuses it, or of the last.
func through(tb testing.TB, c *cluster, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	tb.Helper()

	judge := c.judge(tb, time.Date(2026, time.January, 6, 12, 0, 0, 0, time.UTC))

	rsp := post(tb, serve(tb, &webhook.Mutator{Judge: judge}), req)
	if !rsp.Allowed || req.Operation == admissionv1.Delete {
		return rsp
	}

	final := req.DeepCopy()
	final.Object.Raw = patched(tb, req.Object.Raw, rsp.Patch)

	return post(tb, serve(tb, &webhook.Enforcer{Judge: judge}), final)
}

func TestParentsAreReadLiveOnlyWhereTheCacheDoesNotAllow(t *testing.T) {
	spent := strings.Replace(deployment, "kausality.io/allowances", "other", 1)
	older := strings.Replace(spent, `resourceVersion: "20"`, `resourceVersion: "19"`, 1)
	newer := strings.Replace(spent, `resourceVersion: "20"`, `resourceVersion: "21"`, 1)

	cases := map[string]struct {
		reason         string
		informed, live string
		broken         error
		allowed        bool
		reads          int
		message        string
	}{
		"Known": {
			reason:   "What the cache allows costs no call.",
			informed: deployment, live: deployment, allowed: true,
		},
		"Behind": {
			reason:   "Nothing is refused on stale data: the allowance was given a moment ago.",
			informed: older, live: deployment, allowed: true, reads: 1,
		},
		"Unknown": {
			reason: "The cache may not have heard of the parent yet.",
			live:   deployment, allowed: true, reads: 2,
		},
		"Unasked": {
			reason:   "Where the live parent does not allow it either, it is refused.",
			informed: newer, live: newer, reads: 2, message: `policy "sets" allows it only after an allowed change of spec.replicas`,
		},
		"Gone": {
			reason:   "A parent that is gone allows nothing but deletions.",
			informed: "", live: "", reads: 2, message: "its parent is gone",
		},
		"AnotherUID": {
			reason:   "Another object of the parent's name is not the parent.",
			informed: strings.Replace(deployment, "uid: d", "uid: e", 1), live: strings.Replace(deployment, "uid: d", "uid: e", 1),
			reads: 2, message: "its parent is gone",
		},
		"APIServerDown": {
			reason:   "What cannot be looked at again is not refused as unasked: the request fails, and is tried again.",
			informed: older, broken: errBoom, reads: 1, message: `cannot look at the parent of ReplicaSet "web-1": cannot get Deployment "web": boom`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := denying(t)
			c.broken = tc.broken

			if tc.informed != "" {
				c.informed = append(c.informed, manifest(t, tc.informed))
			}

			if tc.live != "" {
				c.live = append(c.live, manifest(t, tc.live))
			}

			// Namespaces are known, so that only parents are read.
			c.informed = append(c.informed, manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"))

			rsp := through(t, c, scaled(t, replicaSet))
			if rsp.Allowed != tc.allowed {
				t.Fatalf("%s\nallowed %t: %+v", tc.reason, rsp.Allowed, rsp.Result)
			}

			if c.reads != tc.reads && !tc.allowed || tc.allowed && c.reads > tc.reads {
				t.Errorf("%s\n%d reads, want %d", tc.reason, c.reads, tc.reads)
			}

			if !tc.allowed && !strings.Contains(rsp.Result.Message, tc.message) {
				t.Errorf("%s\n%q does not say %q", tc.reason, rsp.Result.Message, tc.message)
			}
		})
	}
}

// TestAControllerThatMayInitiateIsTracedToWhoAsked has the controller heal sets by itself,
// under a policy: what hans asked for above is not put down to it because the informer
// is behind.
func TestAControllerThatMayInitiateIsTracedToWhoAsked(t *testing.T) {
	spent := strings.Replace(deployment, "kausality.io/allowances", "other", 1)
	older := strings.Replace(spent, `resourceVersion: "20"`, `resourceVersion: "19"`, 1)

	for name, tc := range map[string]struct {
		reason string
		live   string
		want   string
	}{
		"Asked":  {"The live parent allows it.", deployment, "hans"},
		"Healed": {"It is not allowed above.", spent, controller},
	} {
		t.Run(name, func(t *testing.T) {
			c := denying(t)
			c.informed = []*unstructured.Unstructured{
				manifest(t, older), manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"),
			}
			c.live = []*unstructured.Unstructured{manifest(t, tc.live)}

			healing := v1alpha1.AllowancePolicy{}
			if err := yaml.Unmarshal([]byte(`{metadata: {name: healing}, spec: {match: {kind: ReplicaSet, fields: [spec.replicas]}, `+
				`subjects: [{kind: User, name: "`+controller+`", mayInitiate: true}], allow: [{kind: Pod, mutations: [create]}]}}`), &healing); err != nil {
				t.Fatal(err)
			}

			c.policies = append(c.policies, healing)
			req := scaled(t, replicaSet)
			rsp := post(t, serve(t, &webhook.Mutator{Judge: c.judge(t, time.Date(2026, time.January, 6, 12, 0, 0, 0, time.UTC))}), req)

			obj := &unstructured.Unstructured{}
			if err := json.Unmarshal(patched(t, req.Object.Raw, rsp.Patch), &obj.Object); err != nil {
				t.Fatal(err)
			}

			trace, err := allowance.ParseTrace(obj)
			if err != nil || len(trace) != 1 || trace[0].Initiator != tc.want {
				t.Errorf("%s\nthe trace is %+v (%v), want one entry of %s", tc.reason, trace, err, tc.want)
			}
		})
	}
}

func TestNothingIsDecidedByAParentThatIsOlderThanOneThatWasRead(t *testing.T) {
	spent := strings.Replace(strings.Replace(deployment, "kausality.io/allowances", "other", 1), `"20"`, `"21"`, 1)

	c := denying(t)
	c.informed = append(c.informed, manifest(t, deployment), manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"))
	c.live = append(c.live, manifest(t, spent))

	judge := c.judge(t, time.Now())
	url := serve(t, &webhook.Mutator{Judge: judge})

	// A change that no allowance covers has the parent read, which has lost its
	// allowance; the informers still have it.
	other := manifest(t, replicaSet)
	if err := unstructured.SetNestedField(other.Object, int64(9), "spec", "minReadySeconds"); err != nil {
		t.Fatal(err)
	}

	if rsp := post(t, url, update(t, manifest(t, replicaSet), other, controller)); rsp.AuditAnnotations["decision"] != "Denied" {
		t.Fatalf("unasked: %v", rsp.AuditAnnotations)
	}

	if rsp := post(t, url, scaled(t, replicaSet)); rsp.AuditAnnotations["decision"] != "Denied" {
		t.Errorf("by the older parent: %v", rsp.AuditAnnotations)
	}

	// Until the informers have caught up.
	c.informed[0] = manifest(t, strings.Replace(deployment, `"20"`, `"22"`, 1))

	if rsp := post(t, url, scaled(t, replicaSet)); rsp.AuditAnnotations["decision"] != "Allowed" {
		t.Errorf("by a newer parent: %v", rsp.AuditAnnotations)
	}
}

// TestAfterARestartNothingIsDecidedByAParentThatIsOlder though nobody remembers what was read: until the informers have listed
// what there is, parents are read live.
func TestAfterARestartNothingIsDecidedByAParentThatIsOlder(t *testing.T) {
	spent := strings.Replace(strings.Replace(deployment, "kausality.io/allowances", "other", 1), `"20"`, `"21"`, 1)
	namespace := manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")

	for name, tc := range map[string]struct {
		reason   string
		syncing  bool
		informed string
	}{
		"Syncing": {reason: "The informers have not listed it.", syncing: true, informed: deployment},
		"Synced":  {reason: "They list what there is.", informed: spent},
	} {
		t.Run(name, func(t *testing.T) {
			c := denying(t)
			c.syncing = tc.syncing
			c.informed = []*unstructured.Unstructured{manifest(t, tc.informed), namespace}
			c.live = []*unstructured.Unstructured{manifest(t, spent), namespace}

			rsp := post(t, serve(t, &webhook.Mutator{Judge: c.judge(t, time.Now())}), scaled(t, replicaSet))
			if rsp.AuditAnnotations["decision"] != "Denied" {
				t.Errorf("%s\n%v", tc.reason, rsp.AuditAnnotations)
			}
		})
	}
}

func TestStrangeInputIsAnsweredClearly(t *testing.T) {
	large := strings.Repeat("x", 1<<20)

	cases := map[string]struct {
		reason   string
		old, obj string
		user     string
		allowed  bool
		message  string
	}{
		"NoUser": {
			reason: "A user without a name may do what anybody may, and initiates nothing.",
			old:    replicaSet, obj: strings.Replace(replicaSet, "replicas: 1", "replicas: 2", 1),
			message: `policy "sets" allows it only after an allowed change of spec.replicas`,
		},
		"OwnsItself": {
			reason: "A cycle of owners is walked one step.",
			old: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: d, ownerReferences: [
				{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]}, spec: {replicas: 1}}`,
			obj: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: d, ownerReferences: [
				{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]}, spec: {replicas: 2}}`,
			user: controller, message: "spec.replicas",
		},
		"OwnerOfNoKind": {
			reason: "An owner of a kind that nothing defines is gone: there can be none. One of a version that is not served is not.",
			old: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: c, ownerReferences: [
				{apiVersion: no.such/v1, kind: Nothing, name: n, uid: n, controller: true}]}, data: {a: b}}`,
			obj: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: c, ownerReferences: [
				{apiVersion: no.such/v1, kind: Nothing, name: n, uid: n, controller: true}]}, data: {a: c}}`,
			user: controller, message: "its parent is gone",
		},
		"OwnerWithoutAnything": {
			reason:  "An owner reference that says nothing refers to nothing.",
			old:     `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: c, ownerReferences: [{controller: true}]}, data: {a: b}}`,
			obj:     `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: c, ownerReferences: [{controller: true}]}, data: {a: c}}`,
			message: "its parent is gone",
		},
		"Oversized": {
			reason:  "An object as large as the API server takes is decided like any other.",
			old:     "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: b}}",
			obj:     "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: " + large + "}}",
			allowed: true,
		},
		"NoSpec": {
			reason:  "An object of nothing but a name is one.",
			old:     "{apiVersion: v9, kind: Unheard, metadata: {name: c}}",
			obj:     "{apiVersion: v9, kind: Unheard, metadata: {name: c}, spec: {a: b}}",
			allowed: true,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := denying(t)
			c.live = append(c.live, manifest(t, strings.Replace(deployment, "kausality.io/allowances", "other", 1)))

			rsp := through(t, c, update(t, manifest(t, tc.old), manifest(t, tc.obj), tc.user))
			if rsp.Allowed != tc.allowed {
				t.Fatalf("%s\nallowed %t: %+v", tc.reason, rsp.Allowed, rsp.Result)
			}

			if !tc.allowed && !strings.Contains(rsp.Result.Message, tc.message) {
				t.Errorf("%s\n%q does not say %q", tc.reason, rsp.Result.Message, tc.message)
			}

			if c.reads > 4 {
				t.Errorf("%s\n%d reads", tc.reason, c.reads)
			}
		})
	}
}

func TestWhatIsNoObjectIsABadRequest(t *testing.T) {
	judge := denying(t).judge(t, time.Now())

	for name, raw := range map[string]string{"Nothing": "", "Null": "null", "List": "[]", "Text": `"text"`, "Number": "7"} {
		t.Run(name, func(t *testing.T) {
			req := &admissionv1.AdmissionRequest{UID: "1", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw)}}
			if raw == "" {
				req.Object.Raw = nil
			}

			for endpoint, rsp := range map[string]*admissionv1.AdmissionResponse{
				"mutate":  post(t, serve(t, &webhook.Mutator{Judge: judge}), req),
				"enforce": post(t, serve(t, &webhook.Enforcer{Judge: judge}), req),
			} {
				if rsp.Allowed || rsp.Result.Code != 400 {
					t.Errorf("%s: %+v", endpoint, rsp)
				}
			}
		})
	}
}

func TestWarningsArriveWhole(t *testing.T) {
	many := make([]string, 20)
	for i := range many {
		many[i] = strings.Repeat("ä", 600) + "\n\x00\xff"
	}

	total := 0

	for _, w := range webhook.Clip(many) {
		if strings.ContainsAny(w, "\n\x00") || !utf8.ValidString(w) {
			t.Errorf("%q cannot be a header", w)
		}

		total += len([]rune(w))
	}

	if total > 4096 {
		t.Errorf("%d characters are more than the API server passes on", total)
	}
}
