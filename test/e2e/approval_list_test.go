// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// frigates have a Deployment of two containers, and a third before these where somebody asks for it who may.
const frigates = `
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: frigates.shop.example.org
spec:
  group: shop.example.org
  scope: Namespaced
  names: {kind: Frigate, plural: frigates}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              pilot: {type: string}
---
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: frigate-pilot}
spec:
  match: {apiGroup: shop.example.org, kind: Frigate, fields: [spec.pilot]}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  # What a pilot has, of which the others keep what they have.
  allow:
  - apiGroup: apps
    kind: Deployment
    mutations:
    - "spec.template.spec.containers[*].name"
    - "spec.template.spec.containers[*].image"
    - "spec.template.spec.containers[*].imagePullPolicy"
    - "spec.template.spec.containers[*].resources"
    - "spec.template.spec.containers[*].terminationMessagePath"
    - "spec.template.spec.containers[*].terminationMessagePolicy"
`

// frigateComposition has the containers run in the directory of a version.
func frigateComposition(version string) string {
	return strings.ReplaceAll(appPipeline("frigates", `
    functionRef: {name: function-templates}
    input:
      apiVersion: templates.example.org/v1
      kind: Template
      template: |
        apiVersion: apps/v1
        kind: Deployment
        metadata: {annotations: {templates.example.org/name: deployment}}
        spec:
          replicas: 0
          selector: {matchLabels: {app: frigate}}
          template:
            metadata: {labels: {app: frigate}}
            spec:
              containers:
              {{- if .xr.spec.pilot }}
              - {name: pilot, image: "{{ .xr.spec.pilot }}"}
              {{- end }}
              - {name: web, image: web, workingDir: /`+version+`}
              - {name: log, image: log, workingDir: /`+version+`}`, stepKausality), "kind: App", "kind: Frigate")
}

func frigateOf(name, pilot string) string {
	return fmt.Sprintf(`
apiVersion: shop.example.org/v1
kind: Frigate
metadata: {name: %s, namespace: default}
spec: {pilot: %q, crossplane: {compositionRef: {name: frigates}}}
`, name, pilot)
}

// directories are those that a Deployment's containers run in.
func directories(u *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	out := make([]string, 0, len(containers))

	for _, e := range containers {
		m, _ := e.(map[string]any)
		out = append(out, resource.String(m, "name")+":"+resource.String(m, "workingDir"))
	}

	return strings.Join(out, " ")
}

// TestAnApprovalIsOfItsElementOfAList wherever in the list that is by then.
func TestAnApprovalIsOfItsElementOfAList(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	c := newCluster(t, "Frigate", "exact-element")
	p := pendingsOf(t, "shop.example.org/v1", "Frigate", namespace, c.name)
	berta := approverNamed(t, "exact-element-berta", [3]string{v1alpha1.VerbApprove, "apps", "deployments"})

	moves := func(index int) held {
		return held{kind: "Deployment", field: fmt.Sprintf("spec.template.spec.containers[%d].workingDir", index), to: "/v2"}
	}

	deployment := c.partHistory(t, app{}.kinds()["deployment"], "deployment", directories)

	const built, joined, moved, left, done = "web:/v1 log:/v1", "pilot: web:/v1 log:/v1", "pilot: web:/v2 log:/v1", "web:/v2 log:/v1", "web:/v2 log:/v2"

	var web, log string

	c.play(t, []scenario.Step{
		{Title: "A new version of two containers is held", Run: func(ctx context.Context) error {
			if err := errors.Join(c.apply(ctx, admin, frigates), c.apply(ctx, admin, frigateComposition("v1")), c.apply(ctx, hans, frigateOf(c.name, ""))); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a frigate", c.settled); err != nil {
				return err
			}

			if err := c.apply(ctx, admin, frigateComposition("v2")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", p.lists(nil, moves(0), moves(1))); err != nil {
				return err
			}

			var err, err2 error

			web, err = p.digest(ctx, moves(0))
			log, err2 = p.digest(ctx, moves(1))

			return errors.Join(err, err2)
		}},
		{Title: "Another one comes before them, as somebody asks who may", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, frigateOf(c.name, "pilot")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a pilot", all(deployment.were(built, joined),
				p.lists(nil, moves(1), moves(2)), c.spent))
		}},
		{Title: "What was approved of the one is made of the one", Run: func(ctx context.Context) error {
			if err := berta.approveExactly(ctx, p, "exact-element-web", web); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a new directory", all(p.becomes("exact-element-web", v1alpha1.ApprovalStateApplied), c.spent,
				p.lists(nil, moves(2)))); err != nil {
				return err
			}

			return still(ctx, deployment.were(built, joined, moved))
		}},
		{Title: "And of the other of the other, once what was before it is gone again", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, frigateOf(c.name, "")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "no pilot", all(p.lists(nil, moves(1)), c.spent)); err != nil {
				return err
			}

			if err := berta.approveExactly(ctx, p, "exact-element-log", log); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a new directory", all(p.becomes("exact-element-log", v1alpha1.ApprovalStateApplied), c.spent, p.finished, c.settled)); err != nil {
				return err
			}

			return still(ctx, deployment.were(built, joined, moved,
				left, done))
		}},
	})
}
