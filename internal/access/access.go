// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access asks the API server what we may do, and remembers the answers.
package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/right"
)

const (
	// allowedFor is how long it counts that something is allowed. A request that is
	// refused meanwhile says so itself.
	allowedFor = 5 * time.Minute
	// deniedFor is how long it counts that something is not: somebody may be about
	// to allow it.
	deniedFor = 2 * time.Second
	// maxAnswers is how many answers are remembered.
	maxAnswers = 1 << 14
)

// Access reports what we may do.
type Access struct {
	// ask asks the API server.
	ask func(ctx context.Context, r right.Right) (bool, error)
	now func() time.Time

	mu      sync.Mutex
	answers map[right.Right]answer
	// forgot is when all answers were forgotten last.
	forgot time.Time
}

type answer struct {
	allowed bool
	until   time.Time
}

// New makes an Access by whom a configuration says we are.
func New(cfg *rest.Config, scheme *runtime.Scheme) (*Access, error) {
	live, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}

	return Asking(func(ctx context.Context, r right.Right) (bool, error) { return ask(ctx, live, r) }, time.Now), nil
}

// Asking makes an Access of a question.
func Asking(ask func(context.Context, right.Right) (bool, error), now func() time.Time) *Access {
	return &Access{ask: ask, now: now, answers: map[right.Right]answer{}}
}

// ask asks whether we may do something in all namespaces.
func ask(ctx context.Context, c client.Client, r right.Right) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: Attributes(r)}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("cannot ask whether we may %s %s: %w", r.Verb, r.Resource, err)
	}

	return review.Status.Allowed, nil
}

// Attributes are those by which the API server is asked about a right.
func Attributes(r right.Right) *authorizationv1.ResourceAttributes {
	resource, sub := r.Split()

	return &authorizationv1.ResourceAttributes{Verb: r.Verb, Group: r.Group, Resource: resource, Subresource: sub}
}

// May reports whether we may do something in all namespaces. Where the API server
// does not answer, we may: what we then may not is refused to us, and said so. So
// it is with an Access that is nil.
func (a *Access) May(ctx context.Context, r right.Right) bool {
	if a == nil {
		return true
	}

	// One answer is enough for all resources of a group, or of all groups, where a
	// role is about them.
	return slices.ContainsFunc(r.Wide(), func(w right.Right) bool { return a.answer(ctx, w, allowedFor) }) || a.answer(ctx, r, deniedFor)
}

// Missing are the needs of which something is missing.
func (a *Access) Missing(ctx context.Context, needs []right.Need) []right.MissingRights {
	return right.Missing(needs, func(r right.Right) bool { return a.May(ctx, r) })
}

// ErrMissing is the cause where a right is missing.
var ErrMissing = errors.New("a right is missing")

// MissingError says which right is missing.
type MissingError struct {
	// Text says which, and Command gives it.
	Text, Command string
}

// Error implements error.
func (e *MissingError) Error() string {
	return message.Then(fmt.Sprintf("%v: %s", ErrMissing, e.Text), e.Command)
}

// Unwrap is [ErrMissing].
func (e *MissingError) Unwrap() error { return ErrMissing }

// Readable says which right to get, list and watch the objects of a kind is
// missing, and what helps, if one is. It is no error that a kind is not served.
func (a *Access) Readable(ctx context.Context, mapper meta.RESTMapper, gk schema.GroupKind) error {
	if list := a.missing(ctx, mapper, gk, right.Read); len(list) > 0 {
		return fmt.Errorf("%w: %s", ErrMissing, right.Message(list, message.Most))
	}

	return nil
}

// missing says what of the need of a kind is.
func (a *Access) missing(
	ctx context.Context, mapper meta.RESTMapper, gk schema.GroupKind, need func(schema.GroupResource) right.Need,
) []right.MissingRights {
	if a == nil {
		return nil
	}

	m, err := mapper.RESTMapping(gk)
	if err != nil {
		return nil // Who reads it finds that out, too.
	}

	return a.Missing(ctx, []right.Need{need(m.Resource.GroupResource())})
}

// Explain says of an error about an object which right is missing of those that it
// takes, where that is what it is about: the API server refused something that it may
// have allowed before.
func (a *Access) Explain(
	ctx context.Context, mapper meta.RESTMapper, gk schema.GroupKind, need func(schema.GroupResource) right.Need, err error,
) error {
	if a == nil || !apierrors.IsForbidden(err) {
		return err
	}

	a.forget()

	if list := a.missing(ctx, mapper, gk, need); len(list) > 0 {
		text, command := right.Explain(list[0])

		return &MissingError{Text: text, Command: command}
	}

	return err
}

// forget has all be asked anew, but not again and again.
func (a *Access) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()

	if now := a.now(); now.Sub(a.forgot) >= deniedFor {
		a.forgot = now

		clear(a.answers)
	}
}

// Reads reports whether we may get, list and watch a resource.
func (a *Access) Reads(ctx context.Context, gr schema.GroupResource) bool {
	return len(a.Missing(ctx, []right.Need{right.Read(gr)})) == 0
}

// Patches reports whether we may patch a resource.
func (a *Access) Patches(ctx context.Context, gr schema.GroupResource) bool {
	return a.May(ctx, right.Right{Verb: "patch", Group: gr.Group, Resource: gr.Resource})
}

// answer is the last one, or a new one where that is too old. A denial counts for
// as long as is said.
func (a *Access) answer(ctx context.Context, r right.Right, denied time.Duration) bool {
	a.mu.Lock()
	was, ok := a.answers[r]
	a.mu.Unlock()

	now := a.now()
	if ok && now.Before(was.until) {
		return was.allowed
	}

	allowed, err := a.ask(ctx, r)
	if err != nil {
		return true
	}

	until := now.Add(denied)
	if allowed {
		until = now.Add(allowedFor)
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	if len(a.answers) >= maxAnswers {
		clear(a.answers)
	}

	a.answers[r] = answer{allowed: allowed, until: until}

	return allowed
}
