// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package windows

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

const (
	// syncSoon is how soon it is checked again whether a watch has begun.
	syncSoon = 250 * time.Millisecond
	// syncPatience is how long a watch may take to begin until windows that
	// depend on it are no longer in force.
	syncPatience = 5 * time.Second
)

// target is what activateWhen names: pods, or one workload.
type target struct {
	gvk       schema.GroupVersionKind
	namespace string
	// labels or name select objects of the kind.
	labels, name string
}

func targetOf(when *v1alpha1.ActivateWhen) target {
	if ref := when.ControllerRef; ref != nil {
		return target{gvk: appsv1.SchemeGroupVersion.WithKind(ref.Kind), namespace: ref.Namespace, name: ref.Name}
	}

	return target{
		gvk: corev1.SchemeGroupVersion.WithKind("Pod"), namespace: when.PodSelector.Namespace,
		labels: labels.SelectorFromSet(when.PodSelector.Labels).String(),
	}
}

// targets watch what windows depend on, each in a cache of its own that holds
// nothing else, and only while a window does.
type targets struct {
	config *rest.Config
	http   *http.Client
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	// newCache makes a cache.
	newCache cache.NewCacheFunc
	// changed takes the windows that depend on what has changed.
	changed func(ctx context.Context, windows []string)

	mu      sync.Mutex
	running map[target]*targetWatch
}

// targetWatch is the watch of one target.
type targetWatch struct {
	cache  cache.Cache
	synced toolscache.InformerSynced
	stop   context.CancelFunc
	since  time.Time
	// windows that depend on it, by name.
	windows map[string]bool
}

// observe returns what a window depends on, and watches it from now on and
// nothing else for that window. False where it is too soon to know.
func (t *targets) observe(ctx context.Context, name string, on target, now time.Time) (upgradeallowance.Observation, bool, error) {
	w, err := t.watch(ctx, name, on, now)
	if err != nil {
		return upgradeallowance.Observation{}, false, err
	}

	if !w.synced() {
		return upgradeallowance.Observation{}, now.Sub(w.since) > syncPatience, nil
	}

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(on.gvk.GroupVersion().WithKind(on.gvk.Kind + "List"))

	if err := w.cache.List(ctx, list, client.InNamespace(on.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return upgradeallowance.Observation{}, false, fmt.Errorf("cannot list %s: %w", on.gvk.Kind, err)
	}

	out := upgradeallowance.Observation{Known: true, Objects: make([]*unstructured.Unstructured, len(list.Items))}
	for i := range list.Items {
		out.Objects[i] = &list.Items[i]
	}

	return out, true, nil
}

// watch returns the watch of a target, which begins where there is none.
func (t *targets) watch(ctx context.Context, name string, on target, now time.Time) (*targetWatch, error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.leave(ctx, name, on)

	if w, ok := t.running[on]; ok {
		w.windows[name] = true

		return w, nil
	}

	w, err := t.start(ctx, on)
	if err != nil {
		return nil, fmt.Errorf("cannot watch %s in namespace %q: %w", on.gvk.Kind, on.namespace, err)
	}

	w.since = now
	w.windows[name] = true
	t.running[on] = w

	return w, nil
}

// release has nothing watched for a window any more.
func (t *targets) release(ctx context.Context, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.leave(ctx, name, target{})
}

// leave ends the watches that no window depends on once one depends on no other
// than the given one.
func (t *targets) leave(ctx context.Context, name string, but target) {
	for on, w := range t.running {
		if on == but || !w.windows[name] {
			continue
		}

		delete(w.windows, name)

		if len(w.windows) == 0 {
			log.FromContext(ctx).Info("Stopped watching what windows depend on", "kind", on.gvk.Kind, "namespace", on.namespace)
			w.stop()
			delete(t.running, on)
		}
	}
}

// stop ends all watches.
func (t *targets) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()

	for on, w := range t.running {
		w.stop()
		delete(t.running, on)
	}
}

// start begins a watch.
func (t *targets) start(ctx context.Context, on target) (*targetWatch, error) {
	selectors := cache.Config{FieldSelector: fields.Everything(), LabelSelector: labels.Everything()}

	if on.name != "" {
		selectors.FieldSelector = fields.OneTermEqualSelector("metadata.name", on.name)
	} else {
		sel, err := labels.Parse(on.labels)
		if err != nil {
			return nil, fmt.Errorf("cannot read its labels: %w", err)
		}

		selectors.LabelSelector = sel
	}

	c, err := t.newCache(t.config, cache.Options{
		HTTPClient: t.http, Scheme: t.scheme, Mapper: t.mapper, ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{object.New(on.gvk): {
			Namespaces: map[string]cache.Config{on.namespace: selectors}, Transform: trimTarget,
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make a cache: %w", err)
	}

	// It outlives the reconcile that starts it.
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	w := &targetWatch{cache: c, stop: stop, windows: map[string]bool{}}

	informer, err := c.GetInformer(run, object.New(on.gvk), cache.BlockUntilSynced(false))
	if err == nil {
		w.synced, err = t.subscribe(run, informer, on)
	}

	if err != nil {
		stop()

		return nil, fmt.Errorf("cannot make an informer: %w", err)
	}

	go func() {
		if err := c.Start(run); err != nil {
			log.FromContext(ctx).Error(err, "Stopped a watch", "kind", on.gvk.Kind)
		}
	}()

	log.FromContext(ctx).Info("Watching what windows depend on", "kind", on.gvk.Kind, "namespace", on.namespace)

	return w, nil
}

// subscribe has windows reconciled when what they depend on changes.
func (t *targets) subscribe(ctx context.Context, informer cache.Informer, on target) (toolscache.InformerSynced, error) {
	changed := func() { t.changed(ctx, t.dependents(on)) }

	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return nil, err
	}

	return registration.HasSynced, nil
}

func (t *targets) dependents(on target) []string {
	t.mu.Lock()
	defer t.mu.Unlock()

	w, ok := t.running[on]
	if !ok {
		return nil
	}

	names := make([]string, 0, len(w.windows))
	for name := range w.windows {
		names = append(names, name)
	}

	return names
}

// trimTarget leaves of what is watched what matters.
func trimTarget(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return upgradeallowance.Trim(u), nil
	}

	return obj, nil
}
