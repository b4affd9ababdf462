// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// desk is where orders are changed: by somebody whom only a Permission lets, and by somebody
// whom the policy names.
type desk struct {
	admin            client.Client
	permitted, named *world.Warned
}

// desks are the namespaces with orders, by their label, and whether what is not allowed is
// refused there.
func desks() map[string]bool { return map[string]bool{"none": false, "fail": true, "ignore": true} }

// TestWhoeverTheAuthorizerCannotBeAskedAboutIsNotGranted has what the manager asks the cluster's
// authorizer stay without an answer, or be answered by errors, while people edit.
func TestWhoeverTheAuthorizerCannotBeAskedAboutIsNotGranted(t *testing.T) {
	d := newDesk(t)
	between := newDetour(t)

	ways := map[string]struct {
		answer http.HandlerFunc
		// says is what is said of it.
		says string
	}{
		"hangs": {between.hang, "the API server has not answered within 2s"},
		"fails": {
			status(http.StatusInternalServerError, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "reason": "InternalError", "message": "no authorizer"}`),
			"no authorizer",
		},
		"unavailable": {
			status(http.StatusServiceUnavailable, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503, "reason": "ServiceUnavailable", "message": "no authorizer"}`),
			"no authorizer",
		},
		"overloaded": {
			status(http.StatusTooManyRequests, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429, "reason": "TooManyRequests", "message": "ask later"}`,
				"Retry-After", "1"),
			"the API server has not answered within 2s",
		},
		"hangs-up": {hangUp, "subjectaccessreviews"},
	}

	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			orders, others := map[string]*unstructured.Unstructured{}, map[string]*unstructured.Unstructured{}

			for label := range desks() {
				orders[label] = d.order(t, "desk-"+label, name)
				others[label] = d.order(t, "desk-"+label, name+"-named")
			}

			// 1. The authorizer answers.
			d.granted(t, d.order(t, "desk-fail", name+"-before"), d.permitted)

			// 2. It does not.
			before := between.answered.Load()

			between.fail("subjectaccessreviews", way.answer)
			t.Cleanup(between.pass)

			for label, refused := range desks() {
				d.notGranted(t, orders[label], refused, way.says)
				d.othersGoOn(t, others[label])
			}

			if between.answered.Load() == before {
				t.Error("the manager has asked nothing")
			}

			// 3. It answers again.
			between.pass()

			for _, order := range orders {
				d.granted(t, order, d.permitted)
			}
		})
	}
}

// newDesk makes the namespaces of orders.
func newDesk(t *testing.T) *desk {
	t.Helper()

	text, err := os.ReadFile("testdata/orders.yaml")
	if err != nil {
		t.Fatal(err)
	}

	if err := apply(t, string(text)); err != nil {
		t.Fatal(err)
	}

	d := &desk{
		admin:     world.Connect(t, running.Config()),
		permitted: world.WarnedAs(t, running, "permitted@example.com", "system:authenticated"),
		named:     world.WarnedAs(t, running, "named@example.com", "system:authenticated"),
	}

	for label := range desks() {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "desk-" + label, Labels: map[string]string{"desk": label}}}
		if err := d.admin.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
	}

	for _, name := range []string{"orders-fail", "orders-ignore"} {
		u := named("kausality.io/v1alpha1", "Enforcement", name)
		u.SetNamespace("")

		if err := scenario.Eventually(t.Context(), "Enforcement "+name, func(ctx context.Context) error { return inForce(ctx, d.admin, u) }); err != nil {
			t.Fatal(err)
		}
	}

	return d
}

// order makes one.
func (d *desk) order(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()

	u := named("shop.example.org/v1", "Order", name)
	u.SetNamespace(namespace)

	if err := d.admin.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}

	return u
}

const (
	larger  = `{"spec": {"size": "large"}}`
	painted = `{"spec": {"color": "blue"}}`
)

// edit has somebody edit an order, and returns what is stored then, and what was said.
func (d *desk) edit(ctx context.Context, t *testing.T, as *world.Warned, order *unstructured.Unstructured, patch string) (live *unstructured.Unstructured, said string, err error) {
	t.Helper()

	as.Take()

	began := time.Now()
	err = as.Patch(ctx, order.DeepCopy(), world.Merge(patch))
	took := time.Since(began)
	said = as.Take()

	if err != nil {
		said += err.Error()
	}

	t.Logf("%s of %s/%s took %s: %s", patch, order.GetNamespace(), order.GetName(), took.Round(time.Millisecond), said)

	live = order.DeepCopy()
	if err := d.admin.Get(ctx, client.ObjectKeyFromObject(order), live); err != nil {
		t.Fatal(err)
	}

	return live, said, err
}

// granted checks that somebody may enlarge an order.
func (d *desk) granted(t *testing.T, order *unstructured.Unstructured, as *world.Warned) {
	t.Helper()

	// Roles may come late, and what was answered last is remembered for a moment.
	if err := scenario.Eventually(t.Context(), "a grant", func(ctx context.Context) error {
		live, said, err := d.edit(ctx, t, as, order, larger)
		if size := resource.String(live.Object, "spec", "size"); err != nil || size != "large" || !carries(live, ofKind("ConfigMap")) {
			return fmt.Errorf("the size is %q, with the allowances %q, and it is said: %s: %w", size,
				resource.Annotation(live, v1alpha1.AnnotationAllowances), said, errors.Join(err, world.ErrOther))
		}

		return nil
	}); err != nil {
		t.Error(err)
	}
}

// notGranted checks that whom only the authorizer would let is granted nothing, and told what
// it could not be asked.
func (d *desk) notGranted(t *testing.T, order *unstructured.Unstructured, refused bool, says string) {
	t.Helper()

	for patch, what := range map[string]string{
		larger:  "the cluster's authorizer cannot be asked for initiate of orders.shop.example.org/kausality: ",
		painted: " is false (the cluster's authorizer cannot be asked: ",
	} {
		live, said, err := d.edit(t.Context(), t, d.permitted, order, patch)

		if refused != apierrors.IsForbidden(err) || !refused && err != nil {
			t.Errorf("%s: %v, and it is to be refused: %t", patch, err, refused)
		}

		// A warning has no room for the answer: the manager's log has it.
		if !refused {
			what, says = "the cluster's authorizer cannot be asked", "will not be applied"
		}

		if !strings.Contains(said, what) || !strings.Contains(said, says) {
			t.Errorf("%s: it is said %q, want %q and %q", patch, said, what, says)
		}

		if carries(live, ofKind("ConfigMap")) {
			t.Errorf("%s: granted %s", patch, resource.Annotation(live, v1alpha1.AnnotationAllowances))
		}

		if edits := resource.Annotation(live, v1alpha1.AnnotationHeld); refused == strings.Contains(edits, "permitted@example.com") {
			t.Errorf("%s: the edits on record are %q, and it was refused: %t", patch, edits, refused)
		}
	}
}

// othersGoOn checks that who is named may go on, and that what is not governed is of no
// concern.
func (d *desk) othersGoOn(t *testing.T, order *unstructured.Unstructured) {
	t.Helper()

	live, said, err := d.edit(t.Context(), t, d.named, order, larger)
	if err != nil || said != "" || !carries(live, ofKind("ConfigMap")) {
		t.Errorf("who is named: %v, and it is said: %s", err, said)
	}

	plain := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: order.GetNamespace(), Name: order.GetName()}}
	if err := d.admin.Create(t.Context(), plain); err != nil {
		t.Fatal(err)
	}

	err = d.permitted.Patch(t.Context(), plain, world.Merge(`{"metadata": {"labels": {"a": "b"}}}`))
	if said := d.permitted.Take(); err != nil || said != "" || plain.GetLabels()["a"] != "b" || len(plain.GetAnnotations()) > 0 {
		t.Errorf("what is not governed: %v, %v, and it is said: %s", err, plain.GetAnnotations(), said)
	}
}
