// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package mask_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()

	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}

	return out
}

func at(t *testing.T, path string) fieldpath.Path {
	t.Helper()

	segments, err := fieldpath.Parse(path)
	if err != nil {
		t.Fatal(err)
	}

	return segments
}

func TestCredentialsAreMaskedWhereverTheyStand(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, object, path string
		want                 any
	}{
		"Secret":          {"All data of a Secret is hidden.", `{kind: Secret, data: {user: aGFucw==}}`, "data.user", mask.Text},
		"SecretWhole":     {"The keys are shown.", `{kind: Secret, data: {user: aGFucw==}}`, "data", map[string]any{"user": mask.Text}},
		"SecretType":      {"What else a Secret has is shown.", `{kind: Secret, type: Opaque}`, "type", "Opaque"},
		"StringData":      {"stringData is data.", `{kind: Secret, stringData: {name: hans}}`, "stringData.name", mask.Text},
		"ConfigMap":       {"A ConfigMap is none.", `{kind: ConfigMap, data: {user: hans}}`, "data.user", "hans"},
		"ConfigMapNamed":  {"Its keys may say so.", `{kind: ConfigMap, data: {DB_PASSWORD: x}}`, "data.DB_PASSWORD", mask.Text},
		"Embedded":        {"A Secret may be inside another object.", `{spec: {manifest: {kind: Secret, data: {user: x}}}}`, "spec.manifest.data.user", mask.Text},
		"EmbeddedAbove":   {"Also where all of it is the value.", `{spec: {manifest: {kind: Secret, data: {user: x}}}}`, "spec.manifest", map[string]any{"kind": "Secret", "data": map[string]any{"user": mask.Text}}},
		"EmbeddedInAList": {"Or in a list.", `{spec: {items: [{kind: Secret, data: {user: x}}]}}`, "spec.items", []any{map[string]any{"kind": "Secret", "data": map[string]any{"user": mask.Text}}}},
		"Password":        {"A field is named like a credential.", `{spec: {masterUserPassword: x}}`, "spec.masterUserPassword", mask.Text},
		"Number":          {"A password may be a number.", `{spec: {password: 1234}}`, "spec.password", mask.Text},
		"Reference":       {"A reference says where it is.", `{spec: {passwordSecretRef: {name: a, key: b}}}`, "spec.passwordSecretRef", map[string]any{"name": "a", "key": "b"}},
		"SecretName":      {"So does a name.", `{spec: {secretName: a}}`, "spec.secretName", "a"},
		"Volume":          {"And a volume.", `{volumes: [{secret: {secretName: a}}]}`, "volumes[0].secret.secretName", "a"},
		"Pull":            {"And a pod's pull secrets.", `{spec: {imagePullSecrets: [{name: a}]}}`, "spec.imagePullSecrets", []any{map[string]any{"name": "a"}}},
		"Automount":       {"True and false are no credentials.", `{spec: {automountServiceAccountToken: true}}`, "spec.automountServiceAccountToken", true},
		"Below":           {"What is below a credential is one.", `{spec: {credentials: {a: {b: x}}}}`, "spec.credentials.a.b", mask.Text},
		"Env":             {"A variable's name tells of its value.", `{env: [{name: DB_PASSWORD, value: x}]}`, "env[0].value", mask.Text},
		"EnvWhole":        {"Also where the list is the value.", `{env: [{name: API_TOKEN, value: x}, {name: A, value: b}]}`, "env", []any{map[string]any{"name": "API_TOKEN", "value": mask.Text}, map[string]any{"name": "A", "value": "b"}}},
		"URL":             {"A URL carries a password.", `{spec: {endpoint: "postgres://u:p@host/db"}}`, "spec.endpoint", mask.Text},
		"PlainURL":        {"Or none.", `{spec: {endpoint: "https://host:8080/a@b"}}`, "spec.endpoint", "https://host:8080/a@b"},
		"PEM":             {"A private key is one anywhere.", "{spec: {pem: \"-----BEGIN RSA PRIVATE KEY-----\\nx\"}}", "spec.pem", mask.Text},
		"Digits":          {"A key may be a number.", `{spec: {"0": {kind: Secret, data: {"1": x}}}}`, "spec[0].data[1]", mask.Text},
		"LastApplied":     {"kubectl keeps what was applied.", `{metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}}`, "metadata.annotations", map[string]any{"kubectl.kubernetes.io/last-applied-configuration": mask.Text}},
		"Ordinary":        {"All else is shown.", `{spec: {size: small, tokenizer: a, keyName: b}}`, "spec", map[string]any{"size": "small", "tokenizer": "a", "keyName": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			u, path := object(t, tc.object), at(t, tc.path)

			v, ok := fieldpath.Value(u, tc.path)
			if !ok { // fieldpath knows no keys of digits.
				v = "x"
			}

			if diff := cmp.Diff(tc.want, mask.Value(path, v, u)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			if got, want := mask.Hides(path, v, u), !cmp.Equal(v, tc.want); got != want {
				t.Errorf("Hides() is %v, want %v", got, want)
			}
		})
	}
}

func TestAValueIsHiddenWhereEitherVersionHidesIt(t *testing.T) {
	was := object(t, `{spec: {manifest: {kind: Secret, data: {user: x}}}}`)
	is := object(t, `{spec: {manifest: {kind: ConfigMap, data: {user: x}}}}`)

	if got := mask.Value(at(t, "spec.manifest.data.user"), "x", was, is); got != mask.Text {
		t.Errorf("it reads %v, want %s", got, mask.Text)
	}

	if got := mask.Value(at(t, "spec.manifest.data.user"), "x"); got != mask.Text {
		t.Errorf("of an unknown object it reads %v, want %s", got, mask.Text)
	}

	if got := mask.Value(at(t, "spec.manifest.data.user"), nil, was, is); got != nil {
		t.Errorf("nothing reads %v, want nothing", got)
	}
}

func TestAnErrorQuotesNoCredential(t *testing.T) {
	secret, plain := object(t, `{kind: Secret, data: {url: cG9zdA==}}`), object(t, `{kind: ConfigMap, data: {url: post}}`)

	for name, tc := range map[string]struct {
		reason, text, want string
	}{
		"Quotes":   {"It may quote anything.", `cannot parse "post"`, "the reason is not shown, for it may quote a credential"},
		"Key":      {"A key may be a value of another object.", "no such key: post", "no such key"},
		"Index":    {"So may an index.", "index out of bounds: 4711", "index out of bounds"},
		"Field":    {"The expression names the field.", "no such field 'port'", "no such field 'port'"},
		"Overload": {"Types are none.", "no such overload: int.startsWith(string)", "no such overload: int.startsWith(string)"},
		"Zero":     {"Nor is zero.", "division by zero", "division by zero"},
		"Within":   {"What begins otherwise may quote in its midst.", "variables.port: no such key: post", "the reason is not shown, for it may quote a credential"},
	} {
		t.Run(name, func(t *testing.T) {
			err := errors.New(tc.text)
			if got := mask.Error(err, plain, secret, nil).Error(); got != tc.want {
				t.Errorf("%s\nit reads %q, want %q", tc.reason, got, tc.want)
			}

			// Where nothing is hidden, all is shown.
			if got := mask.Error(err, plain, nil); !errors.Is(got, err) {
				t.Errorf("%s\nit reads %q, want %q", tc.reason, got, err)
			}
		})
	}
}

func TestWhatWasAppliedIsLeftOut(t *testing.T) {
	const applied = `{metadata: {name: a, annotations: {b: c, kubectl.kubernetes.io/last-applied-configuration: "{}"}}, spec: {d: e}}`

	u := object(t, applied)

	got, ok := mask.WithoutApplied(u)
	if diff := cmp.Diff(object(t, `{metadata: {name: a, annotations: {b: c}}, spec: {d: e}}`), got); !ok || diff != "" {
		t.Errorf("%t, -want, +got:\n%s", ok, diff)
	}

	if diff := cmp.Diff(object(t, applied), u); diff != "" {
		t.Errorf("the object is modified, -want, +got:\n%s", diff)
	}

	if mask.Hides(nil, got, got) || !mask.Hides(nil, u, u) {
		t.Error("it hides something without, or nothing with it")
	}

	for _, text := range []string{`{metadata: {annotations: {b: c}}}`, `{metadata: {name: a}}`, `{}`, `{metadata: a}`} {
		if got, ok := mask.WithoutApplied(object(t, text)); ok || !cmp.Equal(object(t, text), got) {
			t.Errorf("%s: %t, %v", text, ok, got)
		}
	}

	if got, ok := mask.WithoutApplied(nil); ok || got != nil {
		t.Errorf("of nothing: %t, %v", ok, got)
	}
}
