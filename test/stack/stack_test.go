// Copyright The Kausality Authors
// SPDX-License-Identifier: Apache-2.0
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

//go:build stack

package stack

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/patience"
)

// testStack starts a stack without our own programs, for one test.
func testStack(t *testing.T, o Options) *Stack {
	t.Helper()
	o.LogDir = t.TempDir()
	o.Output = t.Output()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.Err())
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestAClaimBecomesAnExternalObjectAndReady(t *testing.T) {
	s := testStack(t, Options{Until: Crossplane})
	b, err := os.ReadFile("testdata/composition.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := ParseManifests(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.apply(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
	claim := objects[len(objects)-1]
	awaitReady(t, s, claim)

	note := &corev1.ConfigMap{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "note"}, note); err != nil {
		t.Fatal(err)
	}
	if got := note.Data["text"]; got != "hello" {
		t.Errorf("external object: got text %q, want hello", got)
	}
}

// awaitReady waits until an object's condition Ready is True.
func awaitReady(t *testing.T, s *Stack, u *unstructured.Unstructured) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience.Limit, true, func(ctx context.Context) (bool, error) {
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return false, err
		}
		conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok && m["type"] == "Ready" && m["status"] == "True" {
				return true, err
			}
		}
		return false, err
	})
	if err != nil {
		t.Fatalf("%s %q does not get ready: %v; its status: %v", u.GetKind(), u.GetName(), err, u.Object["status"])
	}
}

func TestAProcessThatDoesNotGetReadyIsShownByItsLog(t *testing.T) {
	_, err := Start(t.Context(), Options{Until: APIServer, LogDir: t.TempDir(), APIServerFlags: []string{"--no-such-flag"}})
	if err == nil {
		t.Fatal("want an error")
	}
	for _, want := range []string{`"kube-apiserver"`, "exit status", "no-such-flag"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q: %v", want, err)
		}
	}
}

func TestAPartThatWasKilledComesBackWithItsData(t *testing.T) {
	s := testStack(t, Options{Until: APIServer})
	if err := s.Process(etcd).Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Err(); err != nil {
		t.Errorf("what we killed is reported: %v", err)
	}
	for _, name := range []string{etcd, kubeAPIServer} {
		if err := s.Process(name).Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.client.Get(t.Context(), client.ObjectKey{Name: CrossplaneNamespace}, &corev1.Namespace{}); err != nil {
		t.Error(err)
	}
}

func TestAStackThatIsCancelledLeavesNothingRunning(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := Start(ctx, Options{Until: APIServer, LogDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	for _, p := range s.Processes() {
		if pid := p.PID(); pid != 0 {
			t.Errorf("%s still runs as %d", p.Name(), pid)
		}
	}
	if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", s.Dir(), err)
	}
}
