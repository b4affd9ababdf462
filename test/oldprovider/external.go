// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	xpv1 "github.com/crossplane/crossplane-runtime/apis/common/v1"
	"github.com/crossplane/crossplane-runtime/pkg/meta"
	"github.com/crossplane/crossplane-runtime/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/pkg/resource"
)

// call is a request to the external system, in the format of test/provider/external.
type call struct {
	Verb    string      `json:"verb"`
	Name    string      `json:"name"`
	Payload *Parameters `json:"payload,omitempty"`
	Managed described   `json:"managed"`
}

// described is what the managed resource was like.
type described struct {
	Generation  int64                   `json:"generation"`
	Policies    xpv1.ManagementPolicies `json:"policies,omitempty"`
	Annotations map[string]string       `json:"annotations,omitempty"`
	Deleting    bool                    `json:"deleting,omitempty"`
}

// answer is what the external system says.
type answer struct {
	Exists bool       `json:"exists"`
	State  Parameters `json:"state"`
	Error  string     `json:"error"`
}

// connector connects to the external system.
type connector struct {
	url string
}

var errNoVolume = errors.New("the managed resource is neither a Disk nor a Tape")

// Connect returns the client for one managed resource.
func (c connector) Connect(_ context.Context, mg resource.Managed) (managed.ExternalClient, error) {
	v, ok := mg.(interface{ volume() *Volume })
	if !ok {
		return nil, errNoVolume
	}

	return &external{url: c.url, volume: v.volume()}, nil
}

// external does what is asked for one managed resource.
type external struct {
	url    string
	volume *Volume
}

// Observe shows what the external object is like, and fills in its zone.
func (e *external) Observe(ctx context.Context, _ resource.Managed) (managed.ExternalObservation, error) {
	a, err := e.call(ctx, "Observe", nil)
	if err != nil || !a.Exists {
		return managed.ExternalObservation{}, err
	}

	v := e.volume
	v.Status.AtProvider = a.State
	v.SetConditions(xpv1.Available())

	want := &v.Spec.ForProvider
	late := want.Zone == ""

	if late {
		want.Zone = a.State.Zone
	}

	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: *want == a.State, ResourceLateInitialized: late}, nil
}

// Create makes the external object.
func (e *external) Create(ctx context.Context, _ resource.Managed) (managed.ExternalCreation, error) {
	_, err := e.call(ctx, "Create", &e.volume.Spec.ForProvider)

	return managed.ExternalCreation{}, err
}

// Update changes it.
func (e *external) Update(ctx context.Context, _ resource.Managed) (managed.ExternalUpdate, error) {
	_, err := e.call(ctx, "Update", &e.volume.Spec.ForProvider)

	return managed.ExternalUpdate{}, err
}

// Delete takes it away.
func (e *external) Delete(ctx context.Context, _ resource.Managed) (managed.ExternalDelete, error) {
	e.volume.SetConditions(xpv1.Deleting())

	_, err := e.call(ctx, "Delete", nil)

	return managed.ExternalDelete{}, err
}

// Disconnect has nothing to do.
func (e *external) Disconnect(context.Context) error { return nil }

// call has the external system do something. The error is its own, or that of the
// way to it.
func (e *external) call(ctx context.Context, verb string, payload *Parameters) (answer, error) {
	v := e.volume
	name := meta.GetExternalName(v)

	raw, err := json.Marshal(call{Verb: verb, Name: name, Payload: payload, Managed: described{
		Generation: v.GetGeneration(), Policies: v.Spec.ManagementPolicies, Annotations: v.GetAnnotations(), Deleting: meta.WasDeleted(v),
	}})
	if err != nil {
		return answer{}, fmt.Errorf("cannot encode %s of %q: %w", verb, name, err)
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(raw))
	if err != nil {
		return answer{}, fmt.Errorf("cannot %s %q: %w", verb, name, err)
	}

	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("cannot %s %q: %w", verb, name, err)
	}

	defer func() { _ = rsp.Body.Close() }()

	a := answer{}
	if err := json.NewDecoder(rsp.Body).Decode(&a); err != nil {
		return a, fmt.Errorf("cannot %s %q: %s: %w", verb, name, rsp.Status, err)
	}

	if a.Error != "" {
		return a, fmt.Errorf("cannot %s %q: %w", verb, name, errors.New(a.Error))
	}

	return a, nil
}
