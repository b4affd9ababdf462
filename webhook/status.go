// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"gomodules.xyz/jsonpatch/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// subresourceStatus is the subresource that has the conditions of an XR.
const subresourceStatus = "status"

// status answers a request to change the status of an XR. What cannot be read is not refused: Crossplane says how the XR is.
func (m *Mutator) status(req admission.Request) admission.Response {
	ask, err := requestOf(req)
	if err != nil {
		return admission.Allowed("")
	}

	ask.Basis.Settings = m.Judge.Settings

	kept := decision.Status(*ask)
	if kept == nil {
		return admission.Allowed("")
	}

	conditions := jsonpatch.NewOperation("replace", "/status/conditions", resource.List(kept.Object, "status", "conditions"))

	return admission.Patched("", append([]jsonpatch.Operation{conditions}, ownersPatch(ask.New, kept)...)...)
}
