// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/engine/message"
)

// TestANoticeIsRecordedOnce by its reason and what it is about, whatever it says.
func TestANoticeIsRecordedOnce(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := eventsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	of := func(name, uid string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: "example.org/v1", Kind: "Store", Namespace: "a", Name: name, UID: types.UID(uid)}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	long := strings.Repeat("a", maxPrefix-1) + "-" + strings.Repeat("b", 40)

	for i, step := range []struct {
		reason string
		notice Notice
		want   bool
	}{
		{"It is new.", Notice{Regarding: of("s", "1"), Reason: "Forgotten", Note: "x"}, true},
		{"It is known.", Notice{Regarding: of("s", "1"), Reason: "Forgotten", Note: "y"}, false},
		{"That is another object of the name.", Notice{Regarding: of("s", "2"), Reason: "Forgotten", Note: "x"}, true},
		{"That is about something else beside.", Notice{Regarding: of("s", "1"), Related: of("t", "3"), Reason: "Forgotten", Note: "x"}, true},
		{"That is another reason.", Notice{Regarding: of("s", "1"), Reason: "Orphaned", Note: "x"}, true},
		{"A name may be long, and a note.", Notice{Regarding: of(long, "4"), Reason: "Forgotten", Note: strings.Repeat("x", 2*message.Most)}, true},
		{"Also where it is in no namespace.", Notice{Regarding: corev1.ObjectReference{Kind: "Store", Name: "s", UID: "5"}, Reason: "Forgotten", Note: "x"}, true},
	} {
		got, err := step.notice.Record(t.Context(), c, time.Now())
		if err != nil || got != step.want {
			t.Errorf("step %d: %s\nrecorded: %v, %v", i, step.reason, got, err)
		}
	}

	list := &eventsv1.EventList{}
	if err := c.List(t.Context(), list); err != nil || len(list.Items) != 6 {
		t.Fatalf("%d events, %v", len(list.Items), err)
	}

	for _, e := range list.Items {
		if problems := validation.IsDNS1123Subdomain(e.Name); len(problems) > 0 || len(e.Note) > message.Most || e.Namespace == "" {
			t.Errorf("event %q in namespace %q has a note of %d bytes: %v", e.Name, e.Namespace, len(e.Note), problems)
		}
	}
}
