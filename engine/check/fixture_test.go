// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/check"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// served are the kinds of the tests: a Claim, its XR, which is made of another XR, a managed
// resource and a ConfigMap, and kinds of other systems.
func served() []kind.Served {
	gvk := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	}

	return []kind.Served{
		{GVK: gvk("", "ConfigMap"), Resource: "configmaps"},
		{GVK: gvk("example.org", "DatabaseClaim"), Resource: "databaseclaims", Crossplane: true},
		{GVK: gvk("example.org", "Network"), Resource: "networks", Crossplane: true},
		{GVK: gvk("example.org", "Workspace"), Resource: "workspaces"},
		{GVK: gvk("example.org", "XDatabase"), Resource: "xdatabases", Crossplane: true},
		{GVK: gvk("rds.example.org", "Instance"), Resource: "instances", Managed: true},
	}
}

// schemas give each kind spec.size, spec.engine, spec.forProvider and data, and none to the
// Network.
func schemas(gvk schema.GroupVersionKind) *spec.Schema {
	if gvk.Kind == "Network" || gvk.Group != "" && !strings.HasSuffix(gvk.Group, "example.org") {
		return nil
	}

	text := *spec.StringProperty()
	object := func(properties map[string]spec.Schema) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: properties}}
	}
	provider := object(map[string]spec.Schema{"class": text})
	out := object(map[string]spec.Schema{
		"spec": object(map[string]spec.Schema{"size": text, "engine": text, "forProvider": provider}),
		"data": *spec.MapProperty(&text),
	})

	return &out
}

// input are documents, each of a kind of ours, in the order in which they are written.
func input(t *testing.T, documents string) check.Input {
	t.Helper()

	out := check.Input{
		Kinds: served(), Schemas: schemas,
		Composed: []check.Composed{{
			Parent: schema.GroupKind{Group: "example.org", Kind: "DatabaseClaim"},
			Child:  schema.GroupKind{Group: "example.org", Kind: "XDatabase"}, Alone: true,
		}},
		Settings: request.Settings{Crossplane: "system:serviceaccount:crossplane-system:crossplane"},
		Now:      time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC),
	}

	for i, text := range strings.Split(documents, "\n---\n") {
		switch {
		case strings.Contains(text, "kind: AllowanceBinding"):
			out.Bindings = append(out.Bindings, item[v1alpha1.AllowanceBinding](t, i, text))
		case strings.Contains(text, "kind: UpgradeAllowance"):
			out.Windows = append(out.Windows, item[v1alpha1.UpgradeAllowance](t, i, text))
		case strings.Contains(text, "kind: Enforcement"):
			out.Enforcements = append(out.Enforcements, item[v1alpha1.Enforcement](t, i, text))
		default:
			out.Policies = append(out.Policies, item[v1alpha1.AllowancePolicy](t, i, text))
		}
	}

	return out
}

func item[T any](t *testing.T, at int, text string) typecheck.Item[*T] {
	t.Helper()

	return typecheck.Item[*T]{At: at, Object: &fixture.Documents[T](t, text)[0]}
}
