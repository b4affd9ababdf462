// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
)

var (
	errCircle  = errors.New("it comes after itself")
	errNothing = errors.New("nothing is stored there")
	errRequest = errors.New("only a request leaves an object")
)

// parentAfter is the parent as another scenario leaves it, with parent.yaml as a patch on it.
func (s *Scenario) parentAfter() (*unstructured.Unstructured, error) {
	file := path.Clean(s.Request.ParentAfter)
	if path.Ext(file) != Ending {
		file += Ending
	}

	left, err := s.reader.after(Place{Root: s.at.Root, Path: file}, append(slices.Clone(s.led), s.at.Path))
	if err != nil {
		return nil, s.section(fileRequest).wrong("parentAfter", err.Error())
	}

	return s.changed(left, fileParent)
}

// after is the object of a request as it is stored.
func (r *Reader) after(at Place, led []string) (*unstructured.Unstructured, error) {
	if slices.Contains(led, at.Path) {
		return nil, fmt.Errorf("%w: %s", errCircle, strings.Join(append(led, at.Path), " -> "))
	}

	raw, err := r.read(at.Path)
	if err != nil {
		return nil, fmt.Errorf("cannot read scenario: %w", err)
	}

	s, err := r.parse(at, raw, led)
	if err != nil {
		return nil, err
	}

	if s.Request == nil {
		return nil, fmt.Errorf("%s: %w", at.Path, errRequest)
	}

	req, _ := s.Decision()

	d := decision.Decide(req)
	if answer := d.Answer(); answer.Refuses() {
		return nil, fmt.Errorf("%s: %w: %s", at.Path, errNothing, answer.Reason)
	}

	return stored(req, d), nil
}

// stored is what the API server stores of an object that was let through.
func stored(req request.Request, d decision.Decision) *unstructured.Unstructured {
	u := d.Object

	switch {
	case u != nil:
	case req.New != nil:
		u = req.New
	default:
		u = req.Old
	}

	u = u.DeepCopy()

	switch req.Operation {
	case request.OperationCreate:
		u.SetGeneration(1)
	case request.OperationDelete:
		now := metav1.NewTime(req.Basis.Now)
		u.SetDeletionTimestamp(&now)
		u.SetGeneration(u.GetGeneration() + 1)
	case request.OperationUpdate:
		annotated := stamp.AnnotatedByStatus(u) && !equality.Semantic.DeepEqual(req.Old.GetAnnotations(), u.GetAnnotations())
		if annotated || !equality.Semantic.DeepEqual(generates(req.Old), generates(u)) {
			u.SetGeneration(req.Old.GetGeneration() + 1)
		}
	}

	return u
}

// generates is what of an object makes a new generation when it changes.
func generates(u *unstructured.Unstructured) map[string]any {
	out := map[string]any{}

	for key, value := range u.Object {
		if key != "metadata" && key != "status" {
			out[key] = value
		}
	}

	return out
}
