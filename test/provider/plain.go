// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/kausality-io/kausality-crossplane/test/provider/external"
)

// plain makes each change while the runtime waits.
type plain struct {
	client external.Client
}

var errNoServer = errors.New("the managed resource is not a Server")

// Observe shows what the external object is like, and fills in its zone.
func (p *plain) Observe(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	s, ok := mg.(*Server)
	if !ok {
		return managed.ExternalObservation{}, errNoServer
	}

	answer, err := p.client.Call(ctx, request(s, external.Observe))
	if err != nil || !answer.Exists {
		return managed.ExternalObservation{}, err
	}

	at := Parameters{}
	if err := convert(answer.State, &at); err != nil {
		return managed.ExternalObservation{}, err
	}

	s.Status.AtProvider = nil
	if !s.has(Blind) {
		s.Status.AtProvider = &at
	}

	s.SetConditions(xpv2.Available())

	o := managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: upToDate(s.Spec.ForProvider, at)}

	if s.Spec.ForProvider.Zone == nil && at.Zone != nil {
		s.Spec.ForProvider.Zone, o.ResourceLateInitialized = at.Zone, true
	}

	return o, nil
}

// Create makes the external object.
func (p *plain) Create(ctx context.Context, mg resource.Managed) (managed.ExternalCreation, error) {
	s, ok := mg.(*Server)
	if !ok {
		return managed.ExternalCreation{}, errNoServer
	}

	req := request(s, external.Create)
	if err := errors.Join(convert(s.Spec.InitProvider, &req.Payload), convert(s.Spec.ForProvider, &req.Payload)); err != nil {
		return managed.ExternalCreation{}, err
	}

	_, err := p.client.Call(ctx, req)

	return managed.ExternalCreation{}, err
}

// Update changes it.
func (p *plain) Update(ctx context.Context, mg resource.Managed) (managed.ExternalUpdate, error) {
	s, ok := mg.(*Server)
	if !ok {
		return managed.ExternalUpdate{}, errNoServer
	}

	req := request(s, external.Update)
	if err := convert(s.Spec.ForProvider, &req.Payload); err != nil {
		return managed.ExternalUpdate{}, err
	}

	_, err := p.client.Call(ctx, req)

	return managed.ExternalUpdate{}, err
}

// Delete takes it away.
func (p *plain) Delete(ctx context.Context, mg resource.Managed) (managed.ExternalDelete, error) {
	s, ok := mg.(*Server)
	if !ok {
		return managed.ExternalDelete{}, errNoServer
	}

	s.SetConditions(xpv2.Deleting())

	_, err := p.client.Call(ctx, request(s, external.Delete))

	return managed.ExternalDelete{}, err
}

// Disconnect has nothing to do.
func (p *plain) Disconnect(context.Context) error { return nil }

// request tells the system what the managed resource is like, too.
func request(s *Server, verb external.Verb) external.Request {
	policies := make([]string, len(s.Spec.ManagementPolicies))
	for i, a := range s.Spec.ManagementPolicies {
		policies[i] = string(a)
	}

	return external.Request{Verb: verb, Name: meta.GetExternalName(s), Managed: external.Managed{
		UID: string(s.GetUID()), Generation: s.GetGeneration(), Policies: policies, Annotations: s.GetAnnotations(), Deleting: meta.WasDeleted(s),
	}}
}

// upToDate compares what is asked for with what is there. Nobody can ask for
// another image, or for no zone.
func upToDate(want, have Parameters) bool {
	return equal(want.Size, have.Size) && equal(want.Color, have.Color) && maps.Equal(want.Tags, have.Tags) &&
		(want.Zone == nil || equal(want.Zone, have.Zone))
}

func equal[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}

	return *a == *b
}

// convert turns parameters into an object of the external system or back; what
// is there already stays.
func convert(from, to any) error {
	raw, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(raw, to)
	}

	if err != nil {
		return fmt.Errorf("cannot convert parameters: %w", err)
	}

	return nil
}
