// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"fmt"
	"strings"
)

// Compositions of the step that composes an App.
type appComposition func(name, version string, steps ...string) string

// stepKausality is the step of the function, the last one.
const stepKausality = `
  - step: kausality
    functionRef: {name: function-kausality}
`

// stepHolds is that step, where it holds what puts back a change by hand.
const stepHolds = stepKausality + `    input: {apiVersion: kausality.io/v1alpha1, kind: Input, repair: Hold}
`

// appParts are what an App composes, as people write it: with defaults left out,
// empty values, and a Secret in plain text.
func appParts(version string) map[string]string {
	return map[string]string{
		"deployment": `
apiVersion: apps/v1
kind: Deployment
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      hostNetwork: false
      containers:
      - name: web
        image: IMAGE
        args: []
        env: [{name: EMPTY, value: ""}, {name: VERSION, value: ` + version + `}]
        ports: [{containerPort: 80}]
        resources: {requests: {cpu: 1000m, memory: 1024Mi}}`,
		"service": `
apiVersion: v1
kind: Service
spec:
  selector: {app: web, image: IMAGE}
  ports: [{port: 80, targetPort: 8080, name: ` + version + `}]`,
		"secret": `
apiVersion: v1
kind: Secret
stringData: {image: IMAGE, version: ` + version + `, empty: ""}`,
	}
}

// appObject is the managed resource beside them.
const appObject = `
apiVersion: kubernetes.m.crossplane.io/v1alpha1
kind: Object
spec:
  providerConfigRef: {kind: ClusterProviderConfig, name: default}
  forProvider:
    manifest: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: NAME}, data: {image: IMAGE, version: VERSION}}`

// appPipeline is a Composition of a step and those after it.
func appPipeline(name, step string, steps ...string) string {
	return `
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: ` + name + `}
spec:
  compositeTypeRef: {apiVersion: shop.example.org/v1, kind: App}
  mode: Pipeline
  pipeline:
  - step: compose` + step + `
  - step: ready
    functionRef: {name: function-auto-ready}` + strings.Join(steps, "")
}

// indented is text below a key of YAML.
func indented(text string, by int) string {
	return strings.ReplaceAll(strings.TrimLeft(text, "\n"), "\n", "\n"+strings.Repeat(" ", by))
}

// patched composes by function-patch-and-transform.
func patched(name, version string, steps ...string) string {
	var out strings.Builder

	paths := map[string]string{
		"deployment": "spec.template.spec.containers[0].image", "service": "spec.selector.image", "secret": "stringData.image",
	}

	for part, base := range appParts(version) {
		fmt.Fprintf(&out, `
      - name: %s
        base:
          %s
        patches: [{fromFieldPath: spec.image, toFieldPath: "%s"}]
        readinessChecks: [{type: None}]`, part, indented(strings.ReplaceAll(base, "IMAGE", "none"), 10), paths[part])
	}

	object := strings.NewReplacer("IMAGE", "none", "VERSION", version, "NAME", "none").Replace(appObject)
	fmt.Fprintf(&out, `
      - name: object
        base:
          %s
        patches:
        - {fromFieldPath: spec.image, toFieldPath: spec.forProvider.manifest.data.image}
        - fromFieldPath: metadata.name
          toFieldPath: spec.forProvider.manifest.metadata.name
          transforms: [{type: string, string: {type: Format, fmt: "%%s-object"}}]`, indented(object, 10))

	return appPipeline(name, `
    functionRef: {name: function-patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:`+out.String(), steps...)
}

// templated composes by text templates.
func templated(name, version string, steps ...string) string {
	return templatedWith(appParts(version))(name, version, steps...)
}

func templatedWith(parts map[string]string) appComposition {
	return func(name, version string, steps ...string) string {
		var out strings.Builder

		for part, text := range parts {
			fmt.Fprintf(&out, "---\n%s\n", withName(text, part))
		}

		fmt.Fprintf(&out, "---\n%s\n", withName(strings.ReplaceAll(appObject, "VERSION", version), "object"))

		text := strings.NewReplacer("IMAGE", "{{ .xr.spec.image }}", "NAME", "{{ .xr.metadata.name }}-object").Replace(out.String())

		return appPipeline(name, `
    functionRef: {name: function-templates}
    input:
      apiVersion: templates.example.org/v1
      kind: Template
      template: |
        `+indented(text, 8), steps...)
	}
}

// withName gives a document the name of a composed resource. Crossplane's
// managed resources say themselves when they are ready.
func withName(text, part string) string {
	annotations := "templates.example.org/name: " + part
	if part == "object" {
		annotations += `, templates.example.org/wait: "true"`
	}

	return strings.TrimSpace(text) + "\nmetadata: {annotations: {" + annotations + "}}"
}
