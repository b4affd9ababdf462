// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/internal/access"
)

const (
	// adoptEvery is how often a kind is searched for what waits for us, such
	// as what was restored from a backup. To search all costs as much as to
	// list them.
	adoptEvery = time.Hour
	// adoptDenied is how often it is asked whether a kind may be searched that
	// may not.
	adoptDenied = 5 * time.Minute
	// adoptAtOnce is how many kinds are searched before what is asked for is
	// reconciled again.
	adoptAtOnce = 100
	// pageSize is how many objects are listed at once.
	pageSize = 500
)

// Adoption finds what waits for us since before we were started, or was put into
// the cluster since, whether or not anything names its kind.
type Adoption struct {
	Live    client.Reader
	Watches *watch.Watches
	// Access reports whether objects of a kind may be listed and patched.
	Access *access.Access
	// adopted is when each kind was searched last.
	adopted map[schema.GroupVersionKind]time.Time
}

// Adopt has the kinds reconciled of which objects wait for us. Managed resources
// that nothing names are then let go. A kind that cannot be listed is tried
// again, and prevents no other from being searched. False where kinds are
// left.
func (a *Adoption) Adopt(ctx context.Context, served []kind.Served) (bool, error) {
	now, left := a.Watches.Now(), adoptAtOnce
	adopted := make(map[schema.GroupVersionKind]time.Time, len(served))
	complete := true

	for _, k := range served {
		if last, ok := a.adopted[k.GVK]; ok && now.Sub(last) < adoptEvery {
			adopted[k.GVK] = last

			continue
		}

		if left == 0 {
			complete = false

			continue
		}

		adopted[k.GVK] = now

		// What may not be patched could not be let go either.
		if !a.mayAdopt(ctx, k) {
			adopted[k.GVK] = now.Add(adoptDenied - adoptEvery)

			continue
		}

		left--

		waits, err := waiting(ctx, a.Live, k.GVK)
		if err != nil && !permanent(err) {
			log.FromContext(ctx).Info("Cannot tell yet what waits for us", "kind", k.GVK.String(), "problem", err.Error())

			complete = false

			delete(adopted, k.GVK)

			continue
		}

		if err != nil {
			log.FromContext(ctx).Info("Cannot tell what waits for us, for we may not look", "kind", k.GVK.String(), "problem", err.Error())
		}

		if waits {
			if err := a.watch(ctx, k); err != nil {
				return false, err
			}
		}
	}

	a.adopted = adopted

	return complete, nil
}

// mayAdopt reports whether we may find and release objects of a kind.
func (a *Adoption) mayAdopt(ctx context.Context, k kind.Served) bool {
	for _, verb := range []string{"patch", "list"} {
		if !a.Access.May(ctx, right.Right{Verb: verb, Group: k.GVK.Group, Resource: k.Resource}) {
			return false
		}
	}

	return true
}

// watch has a kind reconciled of which objects wait for us: those that own
// something as long as they do, others until it is known whether anything names
// them.
func (a *Adoption) watch(ctx context.Context, k kind.Served) error {
	if k.Owns {
		return a.Watches.RunOwner(ctx, k.GVK)
	}

	return a.Watches.Run(ctx, []kind.Served{{GVK: k.GVK}})
}

// permanent reports whether an error stays until somebody does something about it:
// what may not be listed, or cannot, could not be let go either.
func permanent(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) || object.IsGone(err)
}

// waiting reports whether an object of a kind waits for us.
func waiting(ctx context.Context, live client.Reader, gvk schema.GroupVersionKind) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)

	for {
		if err := live.List(ctx, list, client.Limit(pageSize), client.Continue(list.GetContinue())); err != nil {
			return false, fmt.Errorf("cannot list %s: %w", gvk, err)
		}

		if slices.ContainsFunc(list.Items, func(o metav1.PartialObjectMetadata) bool {
			return slices.Contains(o.GetFinalizers(), v1alpha1.Finalizer)
		}) {
			return true, nil
		}

		if list.GetContinue() == "" {
			return false, nil
		}
	}
}
