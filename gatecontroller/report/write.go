// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/internal/audit"
	"github.com/kausality-io/kausality-crossplane/internal/openreport"
)

// page is how many Reports are listed at once.
const page = 500

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// fingerprint tells what was found from anything else.
func fingerprint(found []audit.Finding) string {
	raw, _ := json.Marshal(found) //nolint:errchkjson // Times of our own have years of four digits.
	sum := sha256.Sum256(raw)

	return hex.EncodeToString(sum[:])
}

// list lists the metadata of the Reports there are, by namespace.
func (r *Reconciler) list(ctx context.Context) (map[string]*metav1.PartialObjectMetadata, error) {
	out := map[string]*metav1.PartialObjectMetadata{}

	for _, kind := range []string{openreport.KindReport, openreport.KindClusterReport} {
		list := &metav1.PartialObjectMetadataList{}

		for {
			list.SetGroupVersionKind(groupVersionKind(kind + "List"))

			ours := client.MatchingLabels{openreport.LabelManagedBy: ManagedBy}

			err := r.Live.List(ctx, list, ours, client.Limit(page), client.Continue(list.Continue))
			if err != nil {
				return nil, fmt.Errorf("cannot list %ss: %w", kind, err)
			}

			for i := range list.Items {
				if item := &list.Items[i]; item.GetName() == Name {
					item.SetGroupVersionKind(groupVersionKind(kind))
					out[item.GetNamespace()] = item
				}
			}

			if list.Continue == "" {
				break
			}
		}
	}

	return out, nil
}

// writeOne writes one Report, and returns the version that it has by then. Of one that is
// there it is read first what it says: its results keep their times.
func (r *Reconciler) writeOne(
	ctx context.Context, namespace string, there bool, found []audit.Finding, now time.Time,
) (version string, err error) {
	report := openreport.New(namespace)
	kind := report.GetObjectKind().GroupVersionKind().Kind

	if there {
		if err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: Name}, report); err != nil {
			return "", fmt.Errorf("cannot get %s of namespace %q: %w", kind, namespace, err)
		}
	}

	before, _ := report.DeepCopyObject().(client.Object)

	author := openreport.Author{Name: Name, ManagedBy: ManagedBy}
	if !author.Write(report, found, now) {
		return report.GetResourceVersion(), nil
	}

	if there {
		err = r.Client.Patch(ctx, report, object.MergeFrom(before), client.FieldOwner(object.FieldManager))
	} else {
		err = r.Client.Create(ctx, report, client.FieldOwner(object.FieldManager))
	}

	// In a namespace that ends nothing new comes to be.
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return "", nil
	}

	if err != nil {
		return "", fmt.Errorf("cannot write %s of namespace %q: %w", kind, namespace, err)
	}

	return report.GetResourceVersion(), nil
}

// remove deletes a Report that nobody has changed since it was listed.
func (r *Reconciler) remove(ctx context.Context, report *metav1.PartialObjectMetadata) error {
	err := r.Client.Delete(ctx, report, client.Preconditions{UID: new(report.GetUID()), ResourceVersion: new(report.GetResourceVersion())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete %s of namespace %q: %w", report.Kind, report.GetNamespace(), err)
	}

	return nil
}

func groupVersionKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: kind}
}

// write writes the Reports that say something else than before, and deletes those for
// which nothing is left, if all is known. One that cannot be written does not keep the
// others from it. That of the cluster comes last, with the findings of namespaces that are gone.
func (r *Reconciler) write(ctx context.Context, found []audit.Finding, complete bool, now time.Time) error {
	there, err := r.list(ctx)
	if err != nil {
		return err
	}

	before := r.kept
	r.kept = map[string]kept{}
	by := openreport.ByNamespace(found)

	var errs []error

	// The cluster's comes last: it has what namespaces cannot have that are gone.
	for _, namespace := range openreport.Namespaces(by) {
		list := by[namespace]
		if namespace == "" {
			list = slices.SortedFunc(slices.Values(list), audit.Compare)
		}

		if len(list) == 0 {
			delete(by, namespace)

			continue
		}

		one := kept{fingerprint: fingerprint(list)}
		if item, ok := there[namespace]; ok {
			one.version = item.GetResourceVersion()
		}

		if one.version == "" || before[namespace] != one {
			one.version, err = r.writeOne(ctx, namespace, one.version != "", list, now)
			if openreport.NamespaceGone(err) {
				by[""], err = append(by[""], list...), nil
			}

			errs = append(errs, err)
		}

		if one.version != "" {
			r.kept[namespace] = one
		}
	}

	for _, namespace := range sorted(there) {
		if _, left := by[namespace]; !left && complete {
			errs = append(errs, r.remove(ctx, there[namespace]))
		}
	}

	return worst(errs)
}

// worst is an error that says more than that something is to be tried again, or else one
// that says that.
func worst(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })

	for _, err := range errs {
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !object.IsGone(err) {
			return err
		}
	}

	if len(errs) == 0 {
		return nil
	}

	return errs[0]
}
