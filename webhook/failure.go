// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/access"
	"github.com/kausality-io/kausality-crossplane/webhook/cached"
)

// Answers to what cannot be decided.
const (
	answerRefused  = "Refused"
	answerAdmitted = "Admitted"
)

// errInternal is the cause when we panic.
var errInternal = errors.New("internal error")

// failed answers a request that cannot be decided: it is refused where an
// Enforcement wants that, and else goes on as it is.
func (j *Judge) failed(ctx context.Context, req admission.Request, ask *request.Request, err error) admission.Response {
	if ask.Namespace == nil { // The cache may know it all the same.
		name := types.NamespacedName{Name: resource.String(cached.ObjectOf(ask).Object, "metadata", "namespace")}
		ask.Namespace, _ = j.Objects.Cached(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, name)
	}

	names, must := decision.MustDecide(*ask, req.SubResource == "" || cached.ObjectOf(ask).GetKind() != req.Kind.Kind)
	gvk := cached.ObjectOf(ask).GroupVersionKind()
	log := j.log(req, ask)

	if must {
		j.Metrics.failed(gvk, answerRefused)
		log.Error(err, "Refused what cannot be decided", "enforcements", names)

		if len(names) > 0 {
			err = fmt.Errorf("%w; try again: Enforcement %s lets nothing pass undecided, for its failurePolicy is Fail",
				err, strings.Join(names, ", "))
		}

		return admission.Errored(http.StatusInternalServerError, err)
	}

	j.Metrics.failed(gvk, answerAdmitted)
	log.Error(err, "Let pass what cannot be decided")

	return admission.Allowed("").WithWarnings(clip([]string{unchecked(err)})...)
}

// unchecked warns of a change that was let pass because of an error.
func unchecked(err error) string {
	const what = "saved without a check by Kausality, and may not be applied: "

	if missing, ok := errors.AsType[*access.MissingError](err); ok {
		return message.First(message.Then(what+missing.Text, missing.Command), what+missing.Text)
	}

	return what + err.Error()
}

// unread answers a request of which what there is to decide it by was not read,
// or the request itself.
func (j *Judge) unread(ctx context.Context, req admission.Request, ask *request.Request, err error) admission.Response {
	if ask == nil || ask.Old == nil && ask.New == nil {
		return admission.Errored(http.StatusBadRequest, err)
	}

	return j.failed(ctx, req, ask, err)
}

// recovered answers a request over which we panicked.
func (j *Judge) recovered(ctx context.Context, req admission.Request, ask *request.Request, panicked any) admission.Response {
	err := fmt.Errorf("%w: %v", errInternal, panicked)
	j.Log.Error(err, "Recovered from a panic", "uid", req.UID, "stack", string(debug.Stack()))

	if req.SubResource == subresourceStatus {
		return admission.Allowed("")
	}

	if ask == nil || ask.Old == nil && ask.New == nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}

	return j.failed(ctx, req, ask, err)
}
