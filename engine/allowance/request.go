// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// A change of metadata makes no new generation, and some kinds have none at all.
// What several such changes allow, one after the other, is distinguished by counting
// them: each is a request within its generation.

// ID is the [v1alpha1.Allowance.ID] of what a change of an object gives, by its generation and the request within it.
func ID(generation, request int64) string {
	return strconv.FormatInt(generation, 10) + "." + strconv.FormatInt(request, 10)
}

// parseID returns generation and request; false for what is no ID.
func parseID(id string) (generation, request int64, ok bool) {
	first, second, _ := strings.Cut(id, ".")
	generation, err := strconv.ParseInt(first, 10, 64)

	if err == nil {
		request, err = strconv.ParseInt(second, 10, 64)
	}

	return generation, request, err == nil && id == ID(generation, request)
}

// RequestOf returns the request within its generation that gave an allowance; 0
// for the change that made the generation.
func RequestOf(a v1alpha1.Allowance) int64 {
	_, request, _ := parseID(a.ID)

	return request
}

// LastRequest returns the last request within a generation of an object; 0 where there was none.
func LastRequest(u *unstructured.Unstructured, generation int64) int64 {
	rec, _ := ParseRecord(u) // What does not parse is reported when it is written.

	if of, request, ok := parseID(rec.Request); ok && of == generation {
		return request
	}

	return 0
}

// CompareAge orders allowances of one object by the request that gave them.
func CompareAge(a, b v1alpha1.Allowance) int {
	if a.Generation != b.Generation || a.ID == b.ID {
		return cmp.Compare(a.Generation, b.Generation)
	}

	return cmp.Compare(RequestOf(a), RequestOf(b))
}

// CompareID orders the IDs of changes of one object.
func CompareID(a, b string) int {
	ofA, requestA, _ := parseID(a)
	ofB, requestB, _ := parseID(b)

	return cmp.Or(cmp.Compare(ofA, ofB), cmp.Compare(requestA, requestB))
}

// DescribeID says for a person which change of an object an ID stands for.
func DescribeID(id string) string {
	generation, request, _ := parseID(id)
	if request == 0 {
		return fmt.Sprintf("generation %d", generation)
	}

	return fmt.Sprintf("generation %d, request %d", generation, request)
}
