// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decisionlog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// encoded is the record of a request about a thing, and the request that it is decided again by.
func encoded(t *testing.T, asked decisionlog.Asked, req request.Request) (line string, again request.Request, masked bool) {
	t.Helper()

	thing := map[string]any{"apiVersion": "example.org/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"}}
	req.Operation, req.New = request.OperationCreate, &unstructured.Unstructured{Object: thing}
	d := decision.Decide(req)

	var encoder decisionlog.Encoder

	entry, err := encoder.Encode(asked, &req, &d)
	if err != nil {
		t.Fatal(err)
	}

	record := &decisionlog.Decision{}
	if err := json.Unmarshal(entry.Decision, record); err != nil {
		t.Fatal(err)
	}

	again, err = record.Request(inforce.NewCache().Set(inforce.Objects{}), &decisionlog.Unknown{})
	if err != nil {
		t.Fatal(err)
	}

	return string(entry.Decision), again, record.Masked
}

// TestWhatAnAuthenticatorKnowsOfAUserIsMasked where it is what the user showed it.
func TestWhatAnAuthenticatorKnowsOfAUserIsMasked(t *testing.T) {
	t.Parallel()

	const secret = "hunter2-hunter2"

	extra := map[string][]string{
		"example.org/access-token": {secret, secret}, "issuer": {"https://a:" + secret + "@example.org"}, "scopes": {"read", "write"},
	}

	line, again, masked := encoded(t, decisionlog.Asked{}, request.Request{User: policy.User{Name: "hans", Extra: extra}})
	if strings.Contains(line, secret) || !masked {
		t.Errorf("masked is %v: %s", masked, line)
	}

	want := map[string][]string{"example.org/access-token": {"(masked)", "(masked)"}, "issuer": {"(masked)"}, "scopes": {"read", "write"}}
	if diff := cmp.Diff(want, again.User.Extra); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestWhatDecidesWhichExternalObjectIsMeantIsRecorded(t *testing.T) {
	t.Parallel()

	want, err := identity.ParseFields([]string{"Topic.kafka.example.org=spec.forProvider.clusterId"})
	if err != nil {
		t.Fatal(err)
	}

	_, again, _ := encoded(t, decisionlog.Asked{}, request.Request{Basis: request.Basis{Settings: request.Settings{Identity: want}}})
	if diff := cmp.Diff(want.Texts(), again.Basis.Settings.Identity.Texts()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestARequestIsReadAsItWasRecorded also where nothing is what it says.
func TestARequestIsReadAsItWasRecorded(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		req    request.Request
	}{
		"AllKinds": {
			"All providers' runtimes may be old ones.",
			request.Request{Basis: request.Basis{Settings: request.Settings{WithoutLateInitialize: management.AllKinds()}}},
		},
		"SomeKinds": {
			"Or those of a group, or of a kind.",
			request.Request{Basis: request.Basis{Settings: request.Settings{
				WithoutLateInitialize: management.Kinds{{Group: "example.org", Kind: "*"}, {Group: "other.org", Kind: "Bucket"}},
			}}},
		},
		"NoOptions":    {"Options that say nothing are not none.", request.Request{Options: map[string]any{}}},
		"OptionsUnset": {"None are none.", request.Request{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, again, _ := encoded(t, decisionlog.Asked{}, tc.req)

			if diff := cmp.Diff(tc.req.Basis.Settings, again.Basis.Settings); diff != "" {
				t.Errorf("%s\nsettings, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.req.Options, again.Options); diff != "" {
				t.Errorf("%s\noptions, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
