// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// errNotScaled is the cause when a kind says nothing of where its replicas are.
var errNotScaled = errors.New("the kind has no scale subresource")

// Scaler puts requests to scale to the engine as what they are: a change of the
// object's replicas. Such a request cannot carry our annotations, so they follow
// it.
type Scaler struct {
	mapper meta.RESTMapper
	stamps followUps
}

// NewScaler makes a Scaler.
func NewScaler(mapper meta.RESTMapper) *Scaler { return &Scaler{mapper: mapper} }

// Start waits for the context to end, and then for the stamps that are still to
// follow.
func (s *Scaler) Start(ctx context.Context) error {
	<-ctx.Done()
	s.stamps.wait()

	return nil
}

// NeedLeaderElection is false: every replica serves.
func (*Scaler) NeedLeaderElection() bool { return false }

// scaling is a request to scale, as a change of the object itself.
type scaling struct {
	Request request.Request

	// path of the replicas in the object.
	path []string
	// from and to are the replicas, nil where there are none.
	from, to any
	// unread is what could not be read, or asked, when it was decided anew last.
	unread error
}

// scale answers a request to scale.
func (m *Mutator) scale(ctx context.Context, req admission.Request, ask *request.Request) admission.Response {
	s, rsp := m.Judge.scaling(ctx, m.Scaler.mapper, req, ask)
	if s == nil {
		return rsp
	}

	d, err := m.Judge.by(ctx, entryPoint{part: decisionlog.PartMutate}, req, &s.Request)
	if err != nil {
		return m.Judge.failed(ctx, req, &s.Request, err)
	}

	m.Judge.report(req, &s.Request, &d)
	m.Judge.Metrics.windows(req, &s.Request, &d)

	rsp = admission.Allowed("").WithWarnings(clip(warningsOf(&d))...)
	rsp.AuditAnnotations = audit(&d)

	switch {
	case len(d.Held) > 0 && !d.Allowed() && s.from == nil:
		// A Scale cannot say that there are none: it would be stored as zero.
		f, _ := d.Lead()

		return refused(f.Change.Field+" cannot be held, for it is not set: "+f.Missing(), &s.Request, &d)
	case len(d.Held) > 0 && !d.Allowed():
		rsp.Patches = []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/replicas", s.from)}
	case req.DryRun != nil && *req.DryRun:
	case len(stamps(s.Request.Old, d.Object)) > 0:
		m.Scaler.stamps.follow(ctx, m.Judge, *s)
	}

	return rsp
}

// scale answers a request to scale, of what an Enforcement governs.
func (e *Enforcer) scale(ctx context.Context, req admission.Request, ask *request.Request) admission.Response {
	s, rsp := e.Judge.scaling(ctx, e.Scaler.mapper, req, ask)
	if s == nil {
		return rsp
	}

	// It is not to be verified: the object carries no stamps yet; they follow.
	d, err := e.Judge.by(ctx, entryPoint{part: decisionlog.PartEnforce}, req, &s.Request)
	if err != nil {
		return e.Judge.failed(ctx, req, &s.Request, err)
	}

	if answer := d.Answer(); answer.Refuses() {
		e.Judge.recordRefusal(req, &s.Request, &d)

		return refused(answer.Reason, &s.Request, &d)
	}

	return admission.Allowed("")
}

// scaling makes of a request to scale the change of the object that it is; nil
// where the response says it all.
func (j *Judge) scaling(
	ctx context.Context, mapper meta.RESTMapper, req admission.Request, ask *request.Request,
) (*scaling, admission.Response) {
	gvr := schema.GroupVersionResource{Group: req.Resource.Group, Version: req.Resource.Version, Resource: req.Resource.Resource}

	if req.SubResource != "scale" || ask.New == nil {
		return nil, admission.Allowed("") // Nothing that we ask for.
	}

	gvk, err := mapper.KindFor(gvr)
	if err != nil {
		return nil, j.failed(ctx, req, ask, fmt.Errorf("cannot tell the kind of %s: %w", gvr.Resource, err))
	}

	path, err := j.replicas(ctx, gvr)
	if err != nil {
		return nil, j.failed(ctx, req, ask, fmt.Errorf("cannot tell the replicas of %s: %w", gvk.Kind, err))
	}

	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(gvk)

	err = j.Live.Get(ctx, types.NamespacedName{Namespace: req.Namespace, Name: req.Name}, live)
	if apierrors.IsNotFound(err) {
		return nil, admission.Allowed("")
	}

	if err != nil {
		return nil, j.failed(ctx, req, ask, fmt.Errorf("cannot get %s %q: %w", gvk.Kind, req.Name, err))
	}

	s := &scaling{Request: *ask, path: path}
	s.from, _ = resource.Value(live.Object, path...)
	s.to = resource.Int(ask.New.Object, "spec", "replicas") // A Scale leaves out a zero.
	s.Request.Operation, s.Request.Old, s.Request.New = request.OperationUpdate, live, live.DeepCopy()

	if err := unstructured.SetNestedField(s.Request.New.Object, s.to, path...); err != nil {
		return nil, j.failed(ctx, req, ask, fmt.Errorf("cannot scale %s %q: %w", gvk.Kind, req.Name, err))
	}

	return s, admission.Response{}
}

// replicas returns where objects of a resource say how many replicas they want.
func (j *Judge) replicas(ctx context.Context, gvr schema.GroupVersionResource) ([]string, error) {
	crd := &extv1.CustomResourceDefinition{}

	err := j.Live.Get(ctx, client.ObjectKey{Name: gvr.Resource + "." + gvr.Group}, crd)
	if apierrors.IsNotFound(err) {
		return []string{"spec", "replicas"}, nil // As all kinds of Kubernetes' own do.
	}

	if err != nil {
		return nil, fmt.Errorf("cannot get its CRD: %w", err)
	}

	for _, v := range crd.Spec.Versions {
		if v.Name == gvr.Version && v.Subresources != nil && v.Subresources.Scale != nil {
			return strings.Split(strings.TrimPrefix(v.Subresources.Scale.SpecReplicasPath, "."), "."), nil
		}
	}

	return nil, errNotScaled
}
