// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errBehind is the cause when the cache does not show yet what was written, or what was written meanwhile.
var errBehind = errors.New("the cache is behind")

// errNoMetadata is the cause when what is to be applied is no object.
var errNoMetadata = errors.New("it has no metadata")

// Outdated reports whether something is to be tried again once the cache shows more: it is behind what we wrote, or
// somebody has changed meanwhile what was to be changed. Of several errors each has to say so.
func Outdated(err error) bool {
	switch e := err.(type) { //nolint:errorlint // It unwraps by itself.
	case nil:
		return false
	case interface{ Unwrap() []error }:
		list := e.Unwrap()

		return len(list) > 0 && !slices.ContainsFunc(list, func(err error) bool { return !Outdated(err) })
	case interface{ Unwrap() error }:
		return Outdated(e.Unwrap())
	default:
		return err == errBehind || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || failedTest(err) //nolint:errorlint // Likewise.
	}
}

// failedTest reports whether a JSON patch found another value than the one that it is to replace. What is not valid
// names the kind.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/patch.go, jsonPatcher.applyJSPatch.
func failedTest(err error) bool {
	var status apierrors.APIStatus

	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}

	details := status.Status().Details

	return details == nil || details.Kind == ""
}

// limit bounds how many writes are under way at once. A part of them is for those that come first.
type limit struct{ all, rest *semaphore.Weighted }

func newLimit(n int64) *limit {
	return &limit{all: semaphore.NewWeighted(n), rest: semaphore.NewWeighted(max(1, min(n-1, n-n/reserved)))}
}

// reserved is which part of the writes is for those that come first: every so manyth.
const reserved = 4

// take waits until a write may begin, and returns what ends it.
func (l *limit) take(ctx context.Context, first bool) (func(), error) {
	if !first {
		if err := l.rest.Acquire(ctx, 1); err != nil {
			return nil, err
		}
	}

	if err := l.all.Acquire(ctx, 1); err != nil {
		if !first {
			l.rest.Release(1)
		}

		return nil, err
	}

	return func() {
		l.all.Release(1)

		if !first {
			l.rest.Release(1)
		}
	}, nil
}

// Client does not read what is older than what it wrote, nor than a write of somebody else that its own met. Until the
// cache shows that, Get returns an error that is [Outdated], and nothing is sent in vain. So many writes are under way
// at once at most.
type Client struct {
	client.Client

	written *Expectations
	limit   *limit
	first   bool
	now     func() time.Time
}

// NewClient makes a Client of one that reads from a cache.
func NewClient(c client.Client, writes int, now func() time.Time) *Client {
	return &Client{Client: c, written: &Expectations{}, limit: newLimit(int64(writes)), now: now}
}

// First is the client for writes that wait for no others.
func (c *Client) First() *Client {
	out := *c
	out.first = true

	return &out
}

// Get reads an object.
func (c *Client) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, obj, opts...); err != nil {
		return err
	}

	if c.written.Behind(obj, c.now()) {
		return errBehind
	}

	return nil
}

// Create creates an object.
func (c *Client) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.write(ctx, obj, func() error { return c.Client.Create(ctx, obj, opts...) })
}

// Update updates an object.
func (c *Client) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.write(ctx, obj, func() error { return c.Client.Update(ctx, obj, opts...) })
}

// Patch patches an object, of which the version is that which was read.
func (c *Client) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.write(ctx, obj, func() error { return c.Client.Patch(ctx, obj, patch, opts...) })
}

// Apply applies an object.
func (c *Client) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	obj, ok := config.(metav1.Object)
	if !ok {
		return fmt.Errorf("cannot apply %T: %w", config, errNoMetadata)
	}

	return c.write(ctx, obj, func() error { return c.Client.Apply(ctx, config, opts...) })
}

// Status writes statuses.
func (c *Client) Status() client.SubResourceWriter { return subresource{c.Client.Status(), c} }

// write writes an object once it may, and remembers what became of that.
func (c *Client) write(ctx context.Context, obj metav1.Object, send func() error) error {
	end, err := c.limit.take(ctx, c.first)
	if err != nil {
		return err
	}

	was := obj.GetResourceVersion()
	err = send()

	end()

	switch {
	case obj.GetUID() == "":
	case err == nil:
		c.written.Expect(obj.GetUID(), obj.GetResourceVersion(), c.now())
	case was != "" && Outdated(err):
		c.written.ExpectAfter(obj.GetUID(), was, c.now())
	}

	return err
}

// subresource writes one of objects.
type subresource struct {
	client.SubResourceWriter

	of *Client
}

// Update updates it.
func (s subresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.of.write(ctx, obj, func() error { return s.SubResourceWriter.Update(ctx, obj, opts...) })
}

// Patch patches it.
func (s subresource) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.of.write(ctx, obj, func() error { return s.SubResourceWriter.Patch(ctx, obj, patch, opts...) })
}
