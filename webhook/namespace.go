// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
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

// unrecorded lets a deletion pass of which nothing could be written down, and
// tells who asks what that means.
func (j *Judge) unrecorded(req admission.Request, ask *request.Request, d *decision.Decision, err error) admission.Response {
	j.log(req, ask).Error(err, "Cannot record who deletes a namespace")

	object := fmt.Sprintf("%s %q", ask.Old.GetKind(), resource.Name(ask.Old))

	rsp := admission.Allowed("").WithWarnings(clip(append(d.Warnings, fmt.Sprintf(
		"%s: cannot record your deletion, and its managed resources remain until someone with permission deletes them: %v",
		object, err)))...)
	rsp.AuditAnnotations = audit(d)

	return rsp
}
