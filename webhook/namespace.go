// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

// namespace returns the namespace of what a request is about; nil for none. Where
// that goes because its namespace does, it is as the API server has it: who
// deleted it wrote down just before what that gives.
func (j *Judge) namespace(ctx context.Context, ask *request.Request, name string) (*unstructured.Unstructured, error) {
	if name == "" || !request.WithNamespace(ask) {
		return j.Objects.Namespace(ctx, name)
	}

	return j.Objects.Read(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, types.NamespacedName{Name: name}, false)
}
