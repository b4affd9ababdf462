// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/webhook"
)

const (
	// ownedMap refers to its owner in the version that was served when it was made.
	ownedMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: c,
		ownerReferences: [{apiVersion: example.org/v1beta1, kind: Postgres, name: p, uid: p, controller: true}]}, data: {a: b}}`
	owningPostgres = `{apiVersion: example.org/v1, kind: Postgres, metadata: {name: p, namespace: shop, uid: p, generation: 2, annotations: {
		kausality.io/initialized: '{"v":1}',
		kausality.io/allowances: "[{kind: ConfigMap, mutation: data, generation: 2, initiator: hans, id: '2.0', source: {type: Policy, field: spec.size}, trace: [{kind: Postgres, name: p, generation: 2, field: spec.size}]}]"}},
		spec: {size: 2}, status: {observedGeneration: 1}}`
	definedPostgres = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: postgres.example.org},
		spec: {group: example.org, names: {kind: Postgres, plural: postgres}, versions: [{name: v1beta1, served: false}, {name: v1, served: SERVED}]}}`
)

func TestAnOwnerIsFoundInWhateverVersionIsServed(t *testing.T) {
	const operator = "system:serviceaccount:ops:operator"

	defined := func(served string) string { return strings.Replace(definedPostgres, "SERVED", served, 1) }
	old, newer := schema.FromAPIVersionAndKind("example.org/v1beta1", "Postgres"), schema.FromAPIVersionAndKind("example.org/v1", "Postgres")

	cases := map[string]struct {
		reason   string
		live     []string
		unserved []schema.GroupVersionKind
		changed  bool
		deleted  bool
		message  string
	}{
		"Served": {
			reason:  "The version of the reference is served.",
			live:    []string{strings.Replace(owningPostgres, "example.org/v1,", "example.org/v1beta1,", 1)},
			changed: true, message: `no policy about Postgres allows it`,
		},
		"AnotherVersion": {
			reason: "Another version is: the parent is there, and its allowances serve.",
			live:   []string{owningPostgres}, unserved: []schema.GroupVersionKind{old},
			changed: true, message: `no policy about Postgres allows it`,
		},
		"NotThere": {
			reason: "Another version is, and has none of that name: it is gone, and what it left may be deleted.",
			live:   []string{strings.ReplaceAll(owningPostgres, "name: p,", "name: q,")}, unserved: []schema.GroupVersionKind{old},
			deleted: true, message: "its parent is gone",
		},
		"NoVersion": {
			reason: "A CRD defines the kind, and no version is served: nobody can tell, so nothing is taken for granted.",
			live:   []string{defined("false")}, unserved: []schema.GroupVersionKind{old, newer},
			message: `cannot get Postgres "p": its kind is defined, and no version of it is served`,
		},
		"NoKind": {
			reason:  "Nothing defines the kind: there can be none.",
			live:    []string{strings.ReplaceAll(strings.ReplaceAll(defined("true"), "Postgres", "MySQL"), "postgres", "mysqls")},
			deleted: true, unserved: []schema.GroupVersionKind{old, newer}, message: "its parent is gone",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := denying(t)
			c.unserved = tc.unserved
			c.informed = append(c.informed, manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"))
			c.live = append(c.live, manifest(t, ownedMap))

			for _, o := range tc.live {
				c.live = append(c.live, manifest(t, o))
			}

			up := through(t, c, update(t, manifest(t, ownedMap), manifest(t, strings.Replace(ownedMap, "{a: b}", "{a: c}", 1)), operator))
			down := post(t, serve(t, &webhook.Enforcer{Judge: c.judge(t, time.Now())}), deleting(t, manifest(t, ownedMap), "anna"))

			if up.Allowed != tc.changed || down.Allowed != tc.deleted {
				t.Errorf("%s\nchanged %t: %v\ndeleted %t: %v", tc.reason, up.Allowed, up.Result, down.Allowed, down.Result)
			}

			for _, rsp := range []string{up.Result.Message, down.Result.Message} {
				if rsp != "" && !strings.Contains(rsp, tc.message) {
					t.Errorf("%s\n%q does not say %q", tc.reason, rsp, tc.message)
				}
			}
		})
	}
}

func TestNobodyReleasesWhatALivingOwnerHasInAnotherVersion(t *testing.T) {
	const (
		managed = `{apiVersion: rds.example.org/v1, kind: Instance, metadata: {name: i, uid: i, annotations: {
			kausality.io/desired-policies: '{"v":1,"policies":["*"]}', kausality.io/gate: "{v: 1, state: Closed, generation: 1}"},
			ownerReferences: [{apiVersion: example.org/v1alpha1, kind: XDatabase, name: x, uid: x, controller: true}]},
			spec: {managementPolicies: [Observe, LateInitialize], forProvider: {size: 1}}}`
		xr = `{apiVersion: example.org/v1, kind: XDatabase, metadata: {name: x, uid: x, generation: 2, annotations: {kausality.io/initialized: '{"v":1}'}}, spec: {crossplane: {}}}`
	)

	c := denying(t)
	c.live = append(c.live, manifest(t, xr))
	c.unserved = []schema.GroupVersionKind{schema.FromAPIVersionAndKind("example.org/v1alpha1", "XDatabase")}

	asked := manifest(t, strings.Replace(managed, `"['*']",`, `"['*']", kausality.io/release: orphan,`, 1))
	rsp := post(t, serve(t, &webhook.Mutator{Judge: c.judge(t, time.Now())}), update(t, manifest(t, managed), asked, "anna"))

	if rsp.Allowed && strings.Contains(string(patched(t, encode(t, asked), rsp.Patch)), "kausality.io/release") {
		t.Error("it is released while its owner is there")
	}
}

func TestAnEnforcementIsAboutTheVersionThatARequestIsMadeIn(t *testing.T) {
	cases := map[string]struct {
		reason string
		// made is the version that the request is made in; that of the object is v1.
		made    string
		known   []string
		allowed bool
	}{
		"Served":  {"It is served in the version of the rule.", "v1", []string{"v1", "v2"}, false},
		"Made":    {"A request is made in it: it is served, though nobody has heard of that.", "v2", []string{"v1"}, false},
		"Other":   {"It is not served in it.", "v1", []string{"v1"}, true},
		"Unknown": {"It is not known in which ones it is served.", "v1", nil, false},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := denying(t)
			c.enforcements[0].Spec.Match.ResourceRules[0].APIVersions = []string{"v2"}
			c.informed = append(c.informed, manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"))
			c.live = append(c.live, manifest(t, strings.Replace(deployment, "kausality.io/allowances", "other", 1)))

			judge := c.judge(t, time.Now())
			judge.Versions = func(context.Context, schema.GroupResource) []string { return tc.known }

			req := scaled(t, replicaSet)
			made := req.Resource
			made.Version = tc.made
			req.RequestResource = &made

			if rsp := post(t, serve(t, &webhook.Enforcer{Judge: judge}), req); rsp.Allowed != tc.allowed {
				t.Errorf("%s\nallowed %t: %+v", tc.reason, rsp.Allowed, rsp.Result)
			}
		})
	}
}
