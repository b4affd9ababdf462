// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/webhook"
	"github.com/kausality-io/kausality-crossplane/webhook/cached"
)

// counting notes which kinds are watched.
type counting struct {
	*cluster

	watched []string
}

func (c *counting) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; !slices.Contains(c.watched, kind) {
		c.watched = append(c.watched, kind)
	}

	return c.cluster.GetInformer(ctx, obj, opts...)
}

// Who creates an object says what its owner is.
func TestTheManagerWatchesNoKindsThatAWriterChooses(t *testing.T) {
	const (
		everything = `{metadata: {name: all}, spec: {match: {resourceRules: [{apiGroups: ["*"], resources: ["*"]}]}, validationActions: [Deny]}}`
		core       = `{metadata: {name: core}, spec: {match: {resourceRules: [{apiGroups: [""], resources: ["*"]}]}, validationActions: [Deny]}}`
		apps       = `{metadata: {name: apps}, spec: {match: {resourceRules: [{apiGroups: [apps], resources: ["*"]}]}, validationActions: [Deny]}}`
		secrets    = `{metadata: {name: secrets}, spec: {match: {resourceRules: [{apiGroups: [""], resources: [secrets]}]}, validationActions: [Deny]}}`
		rollouts   = `{metadata: {name: p}, spec: {match: {kind: Deployment, fields: [spec.replicas]}, allow: [{kind: ReplicaSet, mutations: [spec.replicas]}]}}`
	)

	// A write of each of these has one of the others as its parent.
	objects := map[string][2]string{
		"Secret": {"v1", "secrets"}, "Pod": {"v1", "pods"}, "Event": {"events.k8s.io/v1", "events"}, "Deployment": {"apps/v1", "deployments"},
		"ReplicaSet": {"apps/v1", "replicasets"}, "Instance": {"rds.example.org/v1", "instances"},
	}

	cases := map[string]struct {
		reason       string
		policy       string
		enforcements []string
		asked        []string
		want         []string
	}{
		"Nobody":      {reason: "What is asked about without being named is composed: a kind of a provider's.", asked: []string{"Secret", "Pod", "Instance"}, want: []string{"Instance"}},
		"Policy":      {reason: "Kinds that a policy names.", policy: rollouts, want: []string{"Deployment", "ReplicaSet"}},
		"Everything":  {reason: "A rule about whatever there is names none.", enforcements: []string{everything, core}, asked: []string{"Secret", "Pod", "Deployment", "Instance"}},
		"Group":       {reason: "One about a group names its kinds.", enforcements: []string{everything, apps}, asked: []string{"Secret", "ReplicaSet"}, want: []string{"ReplicaSet"}},
		"Resource":    {reason: "And whoever names Secrets gets them.", enforcements: []string{secrets, core}, asked: []string{"Secret", "Pod"}, want: []string{"Secret"}},
		"NobodyAsked": {reason: "An Enforcement that the API server asked nothing by names nothing yet.", enforcements: []string{apps}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &counting{cluster: &cluster{}}

			if tc.policy != "" {
				c.policies = make([]v1alpha1.AllowancePolicy, 1)
				if err := yaml.UnmarshalStrict([]byte(tc.policy), &c.policies[0]); err != nil {
					t.Fatal(err)
				}
			}

			for _, text := range tc.enforcements {
				var e v1alpha1.Enforcement
				if err := yaml.UnmarshalStrict([]byte(text), &e); err != nil {
					t.Fatal(err)
				}

				c.enforcements = append(c.enforcements, e)
			}

			j := c.judge(t, time.Now())
			j.Objects = cached.NewObjects(c, c, nil, nil)
			url := serve(t, &webhook.Mutator{Judge: j})

			ask := func(kind, owner string) {
				text := `{apiVersion: ` + objects[kind][0] + `, kind: ` + kind + `, metadata: {name: o, namespace: shop, ownerReferences: [{apiVersion: ` +
					objects[owner][0] + `, kind: ` + owner + `, name: x, uid: y, controller: true}]}}`
				req := update(t, manifest(t, text), manifest(t, text), "anna")
				req.Operation, req.OldObject.Raw = admissionv1.Create, nil
				req.Resource.Resource = objects[kind][1]
				req.Resource.Group, _, _ = strings.Cut(strings.TrimSuffix(objects[kind][0], "v1"), "/")
				post(t, url, req)
			}

			for _, kind := range tc.asked {
				ask(kind, kind)
			}

			asked := tc.asked
			if len(asked) == 0 {
				asked = []string{"ConfigMap"} // Which nothing is about.
				objects["ConfigMap"] = [2]string{"v1", "configmaps"}
			}

			for owner := range objects {
				ask(asked[0], owner)
			}

			c.watched = slices.DeleteFunc(c.watched, func(kind string) bool { return kind == "Namespace" })
			slices.Sort(c.watched)

			if diff := cmp.Diff(tc.want, c.watched); diff != "" && len(tc.want)+len(c.watched) > 0 {
				t.Errorf("%s\nwatched: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
