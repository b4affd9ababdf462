// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/internal/parameter"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
	"github.com/kausality-io/kausality-crossplane/webhook"
	"github.com/kausality-io/kausality-crossplane/webhook/cached"
)

var errBoom = errors.New("boom")

// cluster stands in for an API server and the informers that follow it, which
// know what they are given, and may be behind.
type cluster struct {
	cache.Cache
	webhook.Writer

	policies     []v1alpha1.AllowancePolicy
	bindings     []v1alpha1.AllowanceBinding
	upgrades     []v1alpha1.UpgradeAllowance
	enforcements []v1alpha1.Enforcement

	// params are those of policies, in a namespace or not, and unreadable their kinds that
	// cannot be read.
	params     []*unstructured.Unstructured
	unreadable []string

	// live is what the API server has; informed what the informers know.
	live, informed []*unstructured.Unstructured
	// syncing is true while the informers list what there is.
	syncing bool
	// broken makes each read from the API server fail.
	broken error
	// unlisted makes each list of our own kinds fail.
	unlisted error
	// unserved are versions of kinds that nobody serves.
	unserved []schema.GroupVersionKind
	// served are kinds that somebody serves, beside those of live objects.
	served []schema.GroupVersionKind

	// meanwhile happens after what is to be written was read, and before it is written.
	meanwhile func()

	reads   int
	patches []string
}

func (c *cluster) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if c.unlisted != nil {
		return c.unlisted
	}

	if l, ok := list.(*unstructured.UnstructuredList); ok {
		return c.listParams(l, opts)
	}

	switch l := list.(type) {
	case *v1alpha1.AllowancePolicyList:
		l.Items = c.policies
	case *v1alpha1.AllowanceBindingList:
		l.Items = c.bindings
	case *v1alpha1.UpgradeAllowanceList:
		l.Items = c.upgrades
	case *v1alpha1.EnforcementList:
		l.Items = c.enforcements
	case *metav1.PartialObjectMetadataList: // Of CRDs.
		for _, o := range c.live {
			if o.GetKind() == "CustomResourceDefinition" {
				l.Items = append(l.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: o.GetName()}})
			}
		}
	}

	return nil
}

// listParams lists those that a selector selects.
func (c *cluster) listParams(list *unstructured.UnstructuredList, opts []client.ListOption) error {
	var by client.ListOptions

	by.ApplyOptions(opts)

	if slices.Contains(c.unreadable, strings.TrimSuffix(list.GetKind(), "List")) {
		return errBoom
	}

	for _, u := range c.params {
		if u.GetKind()+"List" == list.GetKind() && u.GetNamespace() == by.Namespace && by.LabelSelector.Matches(labels.Set(u.GetLabels())) {
			list.Items = append(list.Items, *u)
		}
	}

	return nil
}

func (c *cluster) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	c.reads++

	u, ok := obj.(*unstructured.Unstructured)
	if c.broken != nil || !ok {
		return c.broken
	}

	if slices.Contains(c.unserved, u.GroupVersionKind()) {
		return &meta.NoKindMatchError{GroupKind: u.GroupVersionKind().GroupKind(), SearchedVersions: []string{u.GroupVersionKind().Version}}
	}

	if slices.Contains(c.unreadable, u.GetKind()) {
		return errBoom
	}

	for _, o := range c.params {
		if o.GroupVersionKind() == u.GroupVersionKind() && client.ObjectKeyFromObject(o) == key {
			u.Object = o.DeepCopy().Object

			return nil
		}
	}

	for _, o := range c.live {
		if o.GroupVersionKind() == u.GroupVersionKind() && o.GetName() == key.Name {
			u.Object = o.DeepCopy().Object

			return nil
		}
	}

	return apierrors.NewNotFound(schema.GroupResource{Resource: u.GetKind()}, key.Name)
}

func (c *cluster) Patch(_ context.Context, obj client.Object, p client.Patch, _ ...client.PatchOption) error {
	raw, err := p.Data(nil)
	if err != nil {
		return err
	}

	if c.meanwhile != nil {
		c.meanwhile()
	}

	if err := c.outdated(obj, raw); err != nil {
		return err
	}

	c.patches = append(c.patches, string(raw))

	return nil
}

// outdated is the error of a patch of a version that is not there, or not any more.
func (c *cluster) outdated(obj client.Object, raw []byte) error {
	var of metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &of); err != nil {
		return err
	}

	gvk := obj.GetObjectKind().GroupVersionKind()
	resource := schema.GroupResource{Resource: gvk.Kind}

	for _, o := range c.live {
		switch {
		case o.GroupVersionKind() != gvk || o.GetName() != obj.GetName():
		case o.GetResourceVersion() != of.ResourceVersion:
			return apierrors.NewConflict(resource, o.GetName(), errBoom)
		default:
			return nil
		}
	}

	return apierrors.NewNotFound(resource, obj.GetName())
}

// Status is written like the rest.
func (c *cluster) Status() client.SubResourceWriter { return status{c: c} }

type status struct {
	client.SubResourceWriter

	c *cluster
}

func (s status) Patch(ctx context.Context, obj client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.c.Patch(ctx, obj, p)
}

// informer knows the objects of a kind.
type informer struct {
	toolscache.SharedIndexInformer

	syncing bool
}

func (i informer) HasSynced() bool { return !i.syncing }

func (c *cluster) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	out := informer{
		SharedIndexInformer: toolscache.NewSharedIndexInformer(&toolscache.ListWatch{}, &unstructured.Unstructured{}, 0, toolscache.Indexers{}),
		syncing:             c.syncing,
	}

	for _, o := range c.informed {
		if o.GroupVersionKind() == obj.GetObjectKind().GroupVersionKind() {
			if err := out.GetStore().Add(o); err != nil {
				return nil, err
			}
		}
	}

	return out, nil
}

// mapper knows the kinds that are served.
func (c *cluster) mapper() meta.RESTMapper {
	kinds := slices.Clone(c.served)

	for _, o := range c.live {
		if !slices.Contains(c.unserved, o.GroupVersionKind()) {
			kinds = append(kinds, o.GroupVersionKind())
		}
	}

	versions := make([]schema.GroupVersion, len(kinds))
	for i, gvk := range kinds {
		versions[i] = gvk.GroupVersion()
	}

	out := meta.NewDefaultRESTMapper(versions)
	for _, gvk := range kinds {
		out.Add(gvk, meta.RESTScopeNamespace)
	}

	for _, u := range c.params {
		scope := meta.RESTScopeRoot
		if u.GetNamespace() != "" {
			scope = meta.RESTScopeNamespace
		}

		out.Add(u.GroupVersionKind(), scope)
	}

	return out
}

// never ends.
type never struct{}

func (never) NotAfter() time.Time { return time.Time{} }

// judge makes what the endpoints share.
func (c *cluster) judge(tb testing.TB, now time.Time) *webhook.Judge {
	tb.Helper()

	counts, err := webhook.NewMetrics(prometheus.NewRegistry(), never{})
	if err != nil {
		tb.Fatal(err)
	}

	return &webhook.Judge{
		Inputs: webhook.InputsOf(c), Objects: cached.NewObjects(c, c, c.mapper(), nil), Live: c, Writer: c,
		Events: events.NewFakeRecorder(100), Metrics: counts, Log: logr.Discard(),
		Settings: request.Settings{Crossplane: corpus.Crossplane, Manager: corpus.Manager},
		Now:      func() time.Time { return now },

		Parameters: parameter.NewReader(c, c.mapper(), nil, time.Now),
	}
}

// serve serves an endpoint over HTTP, as the manager does.
func serve(tb testing.TB, handler admission.Handler) string {
	tb.Helper()

	server := httptest.NewServer(webhook.NewEndpoint(handler))
	tb.Cleanup(server.Close)

	return server.URL
}

func encode(tb testing.TB, u *unstructured.Unstructured) []byte {
	tb.Helper()

	if u == nil {
		return nil
	}

	raw, err := json.Marshal(u.Object)
	if err != nil {
		tb.Fatal(err)
	}

	return raw
}
