// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Status returns what is to be stored of a request to change the status of an XR; nil for what is asked for. Crossplane
// applies the conditions that it read before it ran the pipeline, and says how they are at the end. While its cache is late it
// would say them once more as they were, again and again: each of the two writes has it run the pipeline anew.
func Status(req request.Request) *unstructured.Unstructured {
	if req.Old == nil || req.New == nil || !request.WriterOf(req.User, req.FieldManager, req.Basis.Settings).IsCrossplane() ||
		req.FieldManager != resource.CompositeManager {
		return nil
	}

	return resource.KeepRestated(req.Old, req.New)
}
