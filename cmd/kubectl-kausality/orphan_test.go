// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/orphan"
)

const (
	left = `
apiVersion: rds.example.org/v1
kind: Instance
metadata:
  name: db-1
  uid: db-uid
  annotations: {crossplane.io/composition-resource-name: database, crossplane.io/external-name: prod-db}
  ownerReferences: [{apiVersion: shop.example.org/v1, kind: Database, name: old, uid: old-uid, controller: true}]
spec: {managementPolicies: [Observe], forProvider: {size: 1}}`

	taker = `
apiVersion: shop.example.org/v1
kind: Database
metadata: {name: new, uid: new-uid, annotations: {crossplane.io/paused: "true"}}
spec: {crossplane: {compositionRef: {name: databases}}}
status: {conditions: [{type: Synced, status: "False", reason: ReconcilePaused}]}`

	owner = `
apiVersion: shop.example.org/v1
kind: Database
metadata: {name: old, uid: old-uid, annotations: {crossplane.io/paused: "true"}}
spec: {crossplane: {compositionRef: {name: databases}}}
status: {conditions: [{type: Synced, status: "False", reason: ReconcilePaused}]}`

	claimOf = `
apiVersion: shop.example.org/v1
kind: Claim
metadata: {name: mine, namespace: team}
spec: {resourceRef: {apiVersion: shop.example.org/v1, kind: Database, name: new}}`

	definition = `
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: databases.shop.example.org}
spec: {scope: Cluster}`
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	u := &unstructured.Unstructured{}

	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(raw)
	}

	if err != nil {
		t.Fatal(err)
	}

	return u
}

// recordOf is what was written down about a managed resource that is gone.
func recordOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	r := orphan.NewRecord(parse(t, text), time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC))

	data, err := r.Data()
	if err != nil {
		t.Fatal(err)
	}

	raw, err := json.Marshal(corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kausality-system", Name: r.Name(), Labels: map[string]string{orphan.Label: r.Key()}}, Data: data,
	})
	if err != nil {
		t.Fatal(err)
	}

	return parse(t, string(raw))
}

// fakeCluster holds objects; it gives those that are created a UID.
func fakeCluster(objects ...*unstructured.Unstructured) (*cluster, *dynamicfake.FakeDynamicClient) {
	mapper := meta.NewDefaultRESTMapper(nil)
	kinds := map[schema.GroupVersionResource]string{}

	for _, k := range []struct {
		group, version, kind, plural string
		scope                        meta.RESTScope
	}{
		{"rds.example.org", "v1", "Instance", "instances", meta.RESTScopeRoot},
		{"shop.example.org", "v1", "Database", "databases", meta.RESTScopeRoot},
		{"shop.example.org", "v1", "Claim", "claims", meta.RESTScopeNamespace},
		{"", "v1", "Secret", "secrets", meta.RESTScopeNamespace},
		{"kausality.io", "v1alpha1", "PendingChange", "pendingchanges", meta.RESTScopeNamespace},
		{"kausality.io", "v1alpha1", "ChangeApproval", "changeapprovals", meta.RESTScopeNamespace},
		{"admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", meta.RESTScopeRoot},
		{"apiextensions.crossplane.io", "v1", "CompositeResourceDefinition", "compositeresourcedefinitions", meta.RESTScopeRoot},
	} {
		gv := schema.GroupVersion{Group: k.group, Version: k.version}
		mapper.AddSpecific(gv.WithKind(k.kind), gv.WithResource(k.plural), gv.WithResource(strings.ToLower(k.kind)), k.scope)

		kinds[gv.WithResource(k.plural)] = k.kind + "List"
	}

	list := make([]runtime.Object, len(objects))
	for i, u := range objects {
		list[i] = u
	}

	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, list...)
	named := 0

	client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if create, ok := action.(clienttesting.CreateAction); ok {
			if u, ok := create.GetObject().(*unstructured.Unstructured); ok {
				u.SetUID("made")

				if u.GetName() == "" && u.GetGenerateName() != "" {
					named++

					u.SetName(u.GetGenerateName() + strconv.Itoa(named))
				}
			}
		}

		return false, nil, nil
	})

	return &cluster{client: client, mapper: mapper, namespace: "team", home: "kausality-system"}, client
}

// writes are what was written, as VERB NAME.
func writes(client *dynamicfake.FakeDynamicClient) []string {
	var out []string

	for _, a := range client.Actions() {
		switch action := a.(type) {
		case clienttesting.PatchAction:
			out = append(out, "patch "+action.GetName()+" "+string(action.GetPatch()))
		case clienttesting.CreateAction:
			out = append(out, "create "+action.GetResource().Resource)
		case clienttesting.DeleteAction:
			out = append(out, "delete "+action.GetResource().Resource)
		}
	}

	return out
}

func TestAdopt(t *testing.T) {
	t.Parallel()

	const (
		handed = `patch db-1 {"metadata":{"annotations":{"crossplane.io/composition-resource-name":"database","kausality.io/release":null},` +
			`"labels":{"crossplane.io/claim-name":null,"crossplane.io/claim-namespace":null,"crossplane.io/composite":"new"},` +
			`"ownerReferences":[{"apiVersion":"shop.example.org/v1","blockOwnerDeletion":true,"controller":true,"kind":"Database","name":"new","uid":"new-uid"}],` +
			`"resourceVersion":""}}`
		refers = `patch new {"metadata":{"resourceVersion":""},"spec":{"crossplane":{"resourceRefs":` +
			`[{"apiVersion":"rds.example.org/v1","kind":"Instance","name":"db-1"}]}}}`
		resumed = `patch new {"metadata":{"annotations":{"crossplane.io/paused":null}}}`
		paused  = `patch new {"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`
	)

	cases := map[string]struct {
		reason  string
		objects []string
		record  string
		opts    adoptOptions
		want    []string
		err     error
	}{
		"Left": {
			reason: "An XR that the user paused stays so.", objects: []string{left, taker, definition},
			opts: adoptOptions{by: "database/new"}, want: []string{handed, refers},
		},
		"Resumed": {
			reason: "Unless the user wants it to go on.", objects: []string{left, taker, definition},
			opts: adoptOptions{by: "database/new", resume: true}, want: []string{handed, refers, resumed},
		},
		"Running": {
			reason:  "One that runs is paused for the moment.",
			objects: []string{left, strings.Replace(taker, `crossplane.io/paused: "true"`, `a: b`, 1), definition},
			opts:    adoptOptions{by: "database/new"}, want: []string{paused, handed, refers, resumed},
		},
		"Claim": {
			reason: "A claim stands for its XR.", objects: []string{left, taker, definition, claimOf},
			opts: adoptOptions{by: "claim/mine"}, want: []string{handed, refers},
		},
		"Recorded": {
			reason: "What is gone is created again, for the owner it had, and the record goes.", objects: []string{owner, definition}, record: left,
			want: []string{
				"create instances", strings.ReplaceAll(strings.ReplaceAll(handed, `"new"`, `"old"`), "new-uid", "old-uid"),
				strings.Replace(refers, "patch new", "patch old", 1), "delete secrets",
			},
		},
		"Halfway": {
			reason:  "What was created from a record, and no more, is taken up where it was left.",
			objects: []string{strings.Replace(left, "ownerReferences:", "x:", 1), owner, definition}, record: left,
			want: []string{
				strings.ReplaceAll(strings.ReplaceAll(handed, `"new"`, `"old"`), "new-uid", "old-uid"),
				strings.Replace(refers, "patch new", "patch old", 1), "delete secrets",
			},
		},
		"DryRun": {
			reason: "Of what is gone only its creation can be tried.", objects: []string{owner, definition}, record: left,
			opts: adoptOptions{clusterOptions: clusterOptions{dry: dryRun{mode: dryServer}}}, want: []string{"create instances"},
		},
		"DryRunHere": {
			reason: "Nothing is sent to see what would be.", objects: []string{left, taker, definition},
			opts: adoptOptions{clusterOptions: clusterOptions{dry: dryRun{mode: dryClient}}, by: "database/new"},
		},
		"Nobody":  {reason: "The owner is gone.", objects: []string{left, definition}, err: errNobody},
		"NoXR":    {reason: "Not every owner is an XR.", objects: []string{left, taker}, opts: adoptOptions{by: "database/new"}, err: errNoXR},
		"Unbound": {reason: "A claim may have no XR yet.", objects: []string{left, definition, strings.Replace(claimOf, "name: new", "name: ''", 1)}, opts: adoptOptions{by: "claim/mine"}, err: errUnbound},
		"Owned":   {reason: "Its owner is there.", objects: []string{left, owner, taker, definition}, opts: adoptOptions{by: "database/new"}, err: orphan.ErrOwned},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, client := given(t, tc.objects, tc.record)
			c.dry = tc.opts.dry

			err := adopt(t.Context(), adoption{c}, &bytes.Buffer{}, []string{"instances.rds.example.org/db-1"}, tc.opts)
			if !errors.Is(err, tc.err) {
				t.Fatalf("%s\ngot %v, want %v", tc.reason, err, tc.err)
			}

			if diff := cmp.Diff(tc.want, writes(client)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func given(t *testing.T, texts []string, record string) (*cluster, *dynamicfake.FakeDynamicClient) {
	t.Helper()

	var objects []*unstructured.Unstructured
	for _, text := range texts {
		objects = append(objects, parse(t, text))
	}

	if record != "" {
		objects = append(objects, recordOf(t, record))
	}

	return fakeCluster(objects...)
}

func TestRelease(t *testing.T) {
	t.Parallel()

	const (
		freed    = `patch db-1 {"metadata":{"ownerReferences":[],"resourceVersion":""}}`
		released = `patch db-1 {"metadata":{"annotations":{"kausality.io/release":"orphan"},"ownerReferences":[],"resourceVersion":""}}`
	)

	ending := strings.Replace(left, "uid: db-uid", "uid: db-uid\n  deletionTimestamp: '2026-01-01T00:00:00Z'\n  finalizers: ["+managed.ProviderFinalizer+"]", 1)

	cases := map[string]struct {
		reason  string
		objects []string
		record  string
		opts    releaseOptions
		want    []string
		err     error
	}{
		"Release": {reason: "It stands by itself.", objects: []string{left}, want: []string{freed}},
		"Orphan": {
			reason: "It goes, and its external object stays.", objects: []string{left}, opts: releaseOptions{orphan: true},
			want: []string{released, "delete instances"},
		},
		"DryRun": {
			reason: "Nothing is deleted to see whether it can be.", objects: []string{left},
			opts: releaseOptions{clusterOptions: clusterOptions{dry: dryRun{mode: dryServer}}, orphan: true}, want: []string{released},
		},
		"DryRunHere": {
			reason: "Nothing is sent to see what would be.", objects: []string{left},
			opts: releaseOptions{clusterOptions: clusterOptions{dry: dryRun{mode: dryClient}}, orphan: true},
		},
		"Record": {
			reason: "Of what is gone the record goes.", record: left, opts: releaseOptions{orphan: true}, want: []string{"delete secrets"},
		},
		"OnlyRecord":   {reason: "A record stands by itself.", record: left, err: errOnlyRecord},
		"Owned":        {reason: "Its owner is there.", objects: []string{left, owner}, err: orphan.ErrOwned},
		"Delete":       {reason: "Deleting what is outside takes a policy.", objects: []string{left}, opts: releaseOptions{remove: true}, err: errDelete},
		"Halfway":      {reason: "Who is there keeps the finalizer.", objects: []string{left}, opts: releaseOptions{unprovided: true}, err: errProvider},
		"OwnedButDead": {reason: "An owner of another life is no owner.", objects: []string{left, strings.Replace(owner, "old-uid", "next-uid", 1)}, want: []string{freed}},
		"Unprovided": {
			reason: "What is being deleted is not deleted again; the provider is not waited for.", objects: []string{ending},
			opts: releaseOptions{orphan: true, unprovided: true}, want: []string{`patch db-1 {"metadata":{"finalizers":[],"resourceVersion":""}}`},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, client := given(t, tc.objects, tc.record)
			c.dry = tc.opts.dry

			// As the API server does with what has no finalizer left.
			client.PrependReactor("patch", "instances", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if patch, ok := action.(clienttesting.PatchAction); ok && strings.Contains(string(patch.GetPatch()), `"finalizers":[]`) {
					return true, parse(t, left), client.Tracker().Delete(action.GetResource(), "", patch.GetName())
				}

				return false, nil, nil
			})

			err := release(t.Context(), c, &bytes.Buffer{}, []string{"instances.rds.example.org", "db-1"}, tc.opts)
			if !errors.Is(err, tc.err) {
				t.Fatalf("%s\ngot %v, want %v", tc.reason, err, tc.err)
			}

			if diff := cmp.Diff(tc.want, writes(client)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// patchesOf are those of one object, in order.
func patchesOf(client *dynamicfake.FakeDynamicClient, name string) []string {
	return slices.DeleteFunc(writes(client), func(w string) bool { return !strings.HasPrefix(w, "patch "+name+" ") })
}

func TestWhatSomebodyElseChangedFirstIsReadAgain(t *testing.T) {
	t.Parallel()

	cases := map[string]func(ctx context.Context, c *cluster, args []string) error{
		"Release": func(ctx context.Context, c *cluster, args []string) error {
			return release(ctx, c, io.Discard, args, releaseOptions{})
		},
		"Orphan": func(ctx context.Context, c *cluster, args []string) error {
			return release(ctx, c, io.Discard, args, releaseOptions{orphan: true})
		},
		"Adopt": func(ctx context.Context, c *cluster, args []string) error {
			return adopt(ctx, adoption{c}, io.Discard, args, adoptOptions{by: "database/new"})
		},
	}

	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, client := given(t, []string{left, taker, definition}, "")
			patches := 0

			client.PrependReactor("patch", "instances", func(action clienttesting.Action) (bool, runtime.Object, error) {
				patches++
				if patches > 2 {
					return false, nil, nil
				}

				changed := parse(t, left)
				changed.SetResourceVersion(strconv.Itoa(patches))

				if err := client.Tracker().Update(action.GetResource(), changed, ""); err != nil {
					return true, nil, err
				}

				return true, nil, apierrors.NewConflict(schema.GroupResource{Group: "rds.example.org", Resource: "instances"}, "db-1", errors.New("it was changed"))
			})

			if err := run(t.Context(), c, []string{"instances.rds.example.org/db-1"}); err != nil {
				t.Fatal(err)
			}

			// Of the version that was stored meanwhile.
			if last := patchesOf(client, "db-1"); len(last) != 3 || !strings.Contains(last[2], `"resourceVersion":"2"`) {
				t.Errorf("patched %d times: %v", patches, last)
			}
		})
	}
}

func TestARecordIsFoundByAKindThatIsNotServedAnyMore(t *testing.T) {
	t.Parallel()

	gk := schema.GroupKind{Group: "rds.example.org", Kind: "Policy"}

	for text, want := range map[string]bool{
		"policy": true, "policies": true, "Policy.rds.example.org": true, "policies.rds": true, "policies.v1.rds.example.org": true,
		"pol": false, "policy.ec2.example.org": false, "instances": false, "": false,
	} {
		if got := means(text, gk); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}
