// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const (
	crossplaneUser = "system:serviceaccount:crossplane-system:crossplane"
	managerUser    = "system:serviceaccount:kausality-system:kausality-manager"
	providerUser   = "system:serviceaccount:crossplane-system:provider"
)

func hans() policy.User {
	return policy.User{Name: "hans@example.com", Groups: []string{"platform-team"}}
}

func crossplane() policy.User { return policy.User{Name: crossplaneUser} }

// object decodes YAML the way the API server decodes JSON.
func object(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()

	if text == "" {
		return nil
	}

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		tb.Fatal(err)
	}

	u.Object, _ = fixture.Decoded(u.Object).(map[string]any)

	return u
}

// set compiles the AllowancePolicies among YAML documents.
func set(tb testing.TB, text string) *policy.Set {
	tb.Helper()

	var list []v1alpha1.AllowancePolicy

	for dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096); ; {
		p := v1alpha1.AllowancePolicy{}

		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			tb.Fatal(err)
		}

		if p.Kind == "AllowancePolicy" {
			list = append(list, p)
		}
	}

	s, bad := policy.NewCache().Set(list)
	if len(bad) > 0 {
		tb.Fatal(bad)
	}

	return s
}

// edit returns YAML with texts replaced, in pairs of old and new.
func edit(tb testing.TB, text string, pairs ...string) string {
	tb.Helper()

	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			tb.Fatalf("%q is not in the fixture", pairs[i])
		}

		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}

	return text
}

func requestFor(tb testing.TB, user policy.User, old, obj, parent string) request.Request {
	tb.Helper()

	op := request.OperationUpdate

	switch {
	case old == "":
		op = request.OperationCreate
	case obj == "":
		op = request.OperationDelete
	}

	return request.Request{
		Operation: op, Old: object(tb, old), New: object(tb, obj), Parent: object(tb, parent), User: user,
		Basis: request.Basis{Settings: request.Settings{Crossplane: crossplaneUser, Manager: managerUser}, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
}

// compiled compiles UpgradeAllowances.
func compiled(tb testing.TB, list ...v1alpha1.UpgradeAllowance) []*allowance.Window {
	tb.Helper()

	out, err := fixture.Windows(list...)
	if err != nil {
		tb.Fatal(err)
	}

	return out
}
