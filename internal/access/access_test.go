// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/right"
)

// server answers as an API server would whose roles give some rights.
type server struct {
	allowed map[right.Right]bool
	err     error
	asked   []right.Right
	now     time.Time
}

func (s *server) access() *Access {
	return Asking(func(_ context.Context, r right.Right) (bool, error) {
		s.asked = append(s.asked, r)

		return s.allowed[r], s.err
	}, func() time.Time { return s.now })
}

func (s *server) questions() int {
	n := len(s.asked)
	s.asked = nil

	return n
}

var (
	secrets = right.Right{Verb: "get", Resource: "secrets"}
	pods    = right.Right{Verb: "get", Resource: "pods"}
	errDown = errors.New("down")
)

func TestTheAPIServerIsAskedOnceForEachAnswer(t *testing.T) {
	s := &server{allowed: map[right.Right]bool{secrets: true}, now: time.Unix(0, 0)}
	a := s.access()

	if !a.May(t.Context(), secrets) || s.questions() != 3 {
		t.Error("what a role names is not found by asking for all groups, all of the group, and it")
	}

	for range 100 {
		if !a.May(t.Context(), secrets) {
			t.Fatal("the answer changed")
		}
	}

	if n := s.questions(); n != 0 {
		t.Errorf("%d questions for an answer that is known", n)
	}

	if a.May(t.Context(), pods) || s.questions() != 1 {
		t.Error("of another resource more was asked than that")
	}

	// A denial is checked again soon, and an allowance some time later.
	s.allowed, s.now = map[right.Right]bool{pods: true}, s.now.Add(deniedFor)
	if !a.May(t.Context(), pods) || s.questions() != 1 {
		t.Error("a right that was given is not seen soon")
	}

	s.now = s.now.Add(allowedFor)
	if a.May(t.Context(), secrets) {
		t.Error("a right that was taken away is not seen")
	}
}

func TestARoleForAGroupAnswersForAllOfIt(t *testing.T) {
	s := &server{allowed: map[right.Right]bool{{Verb: "get", Resource: "*"}: true}, now: time.Unix(0, 0)}
	a := s.access()

	for _, r := range []right.Right{pods, secrets, {Verb: "get", Resource: "configmaps"}} {
		if !a.May(t.Context(), r) {
			t.Errorf("may not get %s", r.Resource)
		}
	}

	if n := s.questions(); n != 2 {
		t.Errorf("%d questions, want 2", n)
	}
}

func TestWhereNobodyAnswersNothingIsTakenForMissing(t *testing.T) {
	s := &server{err: errDown, now: time.Unix(0, 0)}
	if a := s.access(); !a.May(t.Context(), secrets) {
		t.Error("an API server that is down takes rights away")
	}

	var none *Access
	if !none.May(t.Context(), secrets) {
		t.Error("without an Access something is missing")
	}
}

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, meta.RESTScopeNamespace)

	return m
}

func TestARefusalNamesTheRightAndTheRemedy(t *testing.T) {
	s := &server{allowed: map[right.Right]bool{}, now: time.Unix(0, 0)}
	a := s.access()
	kind := schema.GroupKind{Kind: "Secret"}

	for _, verb := range []string{"get", "list", "watch", "patch"} {
		s.allowed[right.Right{Verb: verb, Resource: "secrets"}] = true
	}

	if err := a.Readable(t.Context(), mapper(), kind); err != nil {
		t.Fatal(err)
	}

	// It is taken away, and the API server says so first.
	clear(s.allowed)

	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errDown)
	need := func(gr schema.GroupResource) right.Need {
		return right.Governed(right.Kind{Group: gr.Group, Resource: gr.Resource})
	}

	if err := a.Explain(t.Context(), mapper(), kind, need, forbidden); !errors.Is(err, ErrMissing) ||
		!strings.Contains(err.Error(), "get, list, patch and watch secrets") || !strings.Contains(err.Error(), right.Remedy) {
		t.Errorf("Explain: %v", err)
	}

	s.questions()

	for range 100 {
		_ = a.Explain(t.Context(), mapper(), kind, need, forbidden)
	}

	if n := s.questions(); n != 0 {
		t.Errorf("a hundred refusals made %d questions", n)
	}

	if err := a.Explain(t.Context(), mapper(), kind, need, errDown); !errors.Is(err, errDown) {
		t.Errorf("Explain: another error became %v", err)
	}

	if err := a.Readable(t.Context(), mapper(), schema.GroupKind{Kind: "Unknown"}); err != nil {
		t.Errorf("Readable: a kind that nothing serves: %v", err)
	}
}
