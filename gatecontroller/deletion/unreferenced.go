// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/recorder"
)

// unreferenced reports whether a managed resource belongs to an XR that does not refer to it. Crossplane writes the reference before it
// makes what that refers to.
func unreferenced(xr, u *unstructured.Unstructured) bool {
	return resource.IsComposite(xr) && !resource.Deleting(xr) && !resource.Refers(xr, u)
}

// warnUnreferenced reports, once as long as the API server keeps the event, a managed resource that belongs to an XR which does not
// refer to it, as read from the API server: Crossplane does not find it, and wants to make it anew.
func (o *Owners) warnUnreferenced(ctx context.Context, u, xr *unstructured.Unstructured) {
	text := message.Then(fmt.Sprintf("%s %s no longer refers to %s %s. Do not allow it to be created again", xr.GetKind(), resource.Name(xr),
		u.GetKind(), resource.Name(u)), "kubectl kausality adopt "+resource.Argument(u))

	about := recorder.Notice{
		Regarding: referTo(xr), Related: referTo(u), Reason: string(v1alpha1.EventReasonForgotten), Action: "Remind", Note: text,
	}
	of := about
	of.Regarding, of.Related = about.Related, about.Regarding

	if o.Leftovers.tell(ctx, about, of) {
		log.FromContext(ctx).Info("A composite resource does not refer to what it is made of",
			"owner", resource.Name(xr), "ownerKind", xr.GetKind())
	}
}
