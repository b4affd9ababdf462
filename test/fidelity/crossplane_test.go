// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fidelity_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/fn"
)

// resourceName is the composition resource name of what is composed.
const resourceName = "resource"

// rounds is how often Crossplane asks a function for what it requires at most.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0, internal/xfn/required_resources.go.
const rounds = 5

var (
	errFatal   = errors.New("a fatal result")
	errRounds  = errors.New("its requirements do not settle")
	errDropped = errors.New("it is no longer desired")
)

// crossplane composes as Crossplane's FunctionComposer does.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0, internal/controller/apiextensions/composite.
type crossplane struct {
	client   client.Client
	schemas  *schemas
	function *fn.Function
	// old is true for what Crossplane 1.20 sends: no capabilities, no schemas,
	// and extra resources in place of required ones.
	old bool
}

// composite is an XR that composes one resource. No API server needs to know it:
// what Crossplane writes on it is written here.
type composite struct {
	*crossplane

	xr *unstructured.Unstructured
	// key and kind of the composed resource.
	key  client.ObjectKey
	kind schema.GroupVersionKind
	// windows, and whatever else of our kinds the function requires.
	required []*unstructured.Unstructured
}

// manager is the field manager with which Crossplane applies what an XR
// composes.
func (c *composite) manager() string {
	hash := sha256.Sum256([]byte(c.xr.GetName() + c.xr.GroupVersionKind().GroupKind().String()))

	return fmt.Sprintf("apiextensions.crossplane.io/composed/%x", hash)
}

// observe reads the composed resource; nil if there is none.
func (c *composite) observe(ctx context.Context) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(c.kind)

	err := c.client.Get(ctx, c.key, u)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // There is none yet.
	}

	return u, err
}

// run runs the pipeline: a step that wants an object, and then the function.
func (c *composite) run(ctx context.Context, wish map[string]any) (*fnv1.RunFunctionResponse, error) {
	observed, err := c.observe(ctx)
	if err != nil {
		return nil, err
	}

	req, err := c.request(observed, wish)
	if err != nil {
		return nil, err
	}

	var before *fnv1.Requirements

	for range rounds + 1 {
		rsp, err := c.function.RunFunction(ctx, req)
		if err != nil {
			return nil, err
		}

		for _, r := range rsp.GetResults() {
			if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
				return nil, fmt.Errorf("%w: %s", errFatal, r.GetMessage())
			}
		}

		if proto.Equal(before, rsp.GetRequirements()) {
			return rsp, nil
		}

		before = rsp.GetRequirements()
		if err := c.require(ctx, req, before); err != nil {
			return nil, err
		}
	}

	return nil, errRounds
}

// request is what Crossplane sends.
func (c *composite) request(observed *unstructured.Unstructured, wish map[string]any) (*fnv1.RunFunctionRequest, error) {
	req := &fnv1.RunFunctionRequest{
		Meta:     &fnv1.RequestMeta{Tag: c.xr.GetName()},
		Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{}},
		Desired:  &fnv1.State{Resources: map[string]*fnv1.Resource{}},
	}

	if !c.old {
		req.Meta.Capabilities = []fnv1.Capability{
			fnv1.Capability_CAPABILITY_CAPABILITIES, fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES,
			fnv1.Capability_CAPABILITY_CREDENTIALS, fnv1.Capability_CAPABILITY_CONDITIONS, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS,
		}
	}

	var err error
	if req.Observed.Composite, err = message(c.xr.Object); err != nil {
		return nil, err
	}

	if observed != nil {
		if req.Observed.Resources[resourceName], err = message(observed.Object); err != nil {
			return nil, err
		}
	}

	if req.Desired.Resources[resourceName], err = message(wish); err != nil {
		return nil, err
	}

	req.Desired.Resources[resourceName].Ready = fnv1.Ready_READY_TRUE

	return req, nil
}

func message(obj map[string]any) (*fnv1.Resource, error) {
	st, err := structpb.NewStruct(obj)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %v: %w", obj["kind"], err)
	}

	return &fnv1.Resource{Resource: st}, nil
}

// require adds what the function asked for.
func (c *composite) require(ctx context.Context, req *fnv1.RunFunctionRequest, asked *fnv1.Requirements) error {
	selectors := asked.GetResources()
	if c.old {
		selectors = asked.GetExtraResources() //nolint:staticcheck // What older versions of Crossplane know.
	}

	resources := map[string]*fnv1.Resources{}

	for name, s := range selectors {
		found, err := c.find(ctx, s)
		if err != nil {
			return err
		}

		resources[name] = found
	}

	if c.old {
		req.ExtraResources = resources //nolint:staticcheck // As above.

		return nil
	}

	req.RequiredResources, req.RequiredSchemas = resources, map[string]*fnv1.Schema{}

	for name, s := range asked.GetSchemas() {
		sch, err := c.schemas.sent(schema.FromAPIVersionAndKind(s.GetApiVersion(), s.GetKind()))
		if err != nil {
			return err
		}

		req.RequiredSchemas[name] = sch
	}

	return nil
}

// find finds required resources: by name in the API server, by labels among
// those of our kinds.
func (c *composite) find(ctx context.Context, s *fnv1.ResourceSelector) (*fnv1.Resources, error) {
	if name := s.GetMatchName(); name != "" {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(s.GetApiVersion())
		u.SetKind(s.GetKind())

		err := c.client.Get(ctx, client.ObjectKey{Namespace: s.GetNamespace(), Name: name}, u)
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // As Crossplane does.
		}

		if err != nil {
			return nil, err
		}

		m, err := message(u.Object)

		return &fnv1.Resources{Items: []*fnv1.Resource{m}}, err
	}

	out := &fnv1.Resources{Items: []*fnv1.Resource{}}

	for _, u := range c.required {
		if u.GetKind() != s.GetKind() || !contains(u.GetLabels(), s.GetMatchLabels().GetLabels()) {
			continue
		}

		m, err := message(u.Object)
		if err != nil {
			return nil, err
		}

		out.Items = append(out.Items, m)
	}

	return out, nil
}

func contains(labels, want map[string]string) bool {
	for key, v := range want {
		if labels[key] != v {
			return false
		}
	}

	return true
}

// apply applies a response, and writes the XR's conditions.
func (c *composite) apply(ctx context.Context, rsp *fnv1.RunFunctionResponse) error {
	desired := rsp.GetDesired().GetResources()[resourceName]

	observed, err := c.observe(ctx)
	if err != nil {
		return err
	}

	switch {
	case desired == nil && observed != nil:
		return errDropped
	case desired != nil:
		if _, err := c.patch(ctx, desired.GetResource().AsMap(), observed); err != nil {
			return err
		}
	}

	c.condition(rsp)

	return nil
}

// patch applies an object as Crossplane does, with the options given.
func (c *composite) patch(
	ctx context.Context, object map[string]any, observed *unstructured.Unstructured, opts ...client.PatchOption,
) (*unstructured.Unstructured, error) {
	u := (&unstructured.Unstructured{Object: object}).DeepCopy()

	if observed != nil {
		u.SetNamespace(observed.GetNamespace())
		u.SetName(observed.GetName())
		u.SetGenerateName(observed.GetGenerateName())
	}

	annotations := maps.Clone(u.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}

	annotations["crossplane.io/composition-resource-name"] = resourceName
	u.SetAnnotations(annotations)

	labels := maps.Clone(u.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}

	labels["crossplane.io/composite"] = c.xr.GetName()
	u.SetLabels(labels)
	u.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: c.xr.GetAPIVersion(), Kind: c.xr.GetKind(), Name: c.xr.GetName(), UID: c.xr.GetUID(),
		Controller: new(true), BlockOwnerDeletion: new(true),
	}})

	opts = append(opts, client.ForceOwnership, client.FieldOwner(c.manager()))
	err := c.client.Patch(ctx, u, client.Apply, opts...) //nolint:staticcheck // What Crossplane calls.

	return u, err
}

// condition writes the conditions on the XR that Crossplane writes.
func (c *composite) condition(rsp *fnv1.RunFunctionResponse) {
	list := make([]any, 0, 2+len(rsp.GetConditions()))

	for _, typ := range []string{"Synced", "Ready"} {
		list = append(list, map[string]any{"type": typ, "status": "True", "reason": typ, "observedGeneration": c.xr.GetGeneration()})
	}

	for _, cond := range rsp.GetConditions() {
		status := "False"
		if cond.GetStatus() == fnv1.Status_STATUS_CONDITION_TRUE {
			status = "True"
		}

		list = append(list, map[string]any{
			"type": cond.GetType(), "status": status, "reason": cond.GetReason(), "message": cond.GetMessage(),
		})
	}

	c.xr.Object["status"] = map[string]any{"conditions": list}
}

// said is what the function says of the XR.
func said(rsp *fnv1.RunFunctionResponse) string {
	i := slices.IndexFunc(rsp.GetConditions(), func(c *fnv1.Condition) bool { return c.GetType() == "Kausality" })
	if i < 0 {
		return ""
	}

	return rsp.GetConditions()[i].GetMessage()
}
