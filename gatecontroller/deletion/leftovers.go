// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/judging"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/internal/recorder"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// Leftovers block the deletion of gated resources until it is recorded what they orphan:
// what is deleted past admission, with its CRD or its provider, is deleted
// without the external object, and nothing else would show.
type Leftovers struct {
	writer object.Writer
	live   client.Reader
	// namespace we run in.
	namespace string
	// gate holds what gates are moved by, and now is the clock.
	gate  gate.Options
	now   func() time.Time
	total *prometheus.CounterVec
}

// NewLeftovers makes Leftovers, and registers their metric.
func NewLeftovers(
	reg prometheus.Registerer, c client.Client, live client.Reader, namespace string, opts gate.Options, now func() time.Time,
) (*Leftovers, error) {
	e := &Leftovers{writer: object.Writer{Client: c}, live: live, namespace: namespace, gate: opts, now: now}
	e.total = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kausality_left_behind_total",
		Help: "Managed resources whose owner, and external objects whose managed resource, were deleted where deleting them was not allowed. " +
			"One of which no event can be recorded counts each time that it is released.",
	}, []string{"left", object.LabelGroup, object.LabelKind})

	if err := reg.Register(e.total); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}

	return e, nil
}

// +kubebuilder:rbac:groups="",namespace=kausality-system,resources=secrets,verbs=create

// EnsureFinalizer has a gated resource wait for us before it goes.
func (e *Leftovers) EnsureFinalizer(ctx context.Context, u *unstructured.Unstructured) error {
	if object.HasFinalizer(u) || resource.Deleting(u) {
		return nil // Nothing to do, or too late.
	}

	// What was just written is another version: it is kept when we see that.
	if plan, _ := gate.PlanFor(u, e.gate, e.now()); plan.Move != gate.Stay {
		return nil
	}

	return e.writer.AddFinalizer(ctx, u)
}

// Release writes down what a gated resource leaves behind, and lets it go. True
// where it has to wait for its gate.
func (e *Leftovers) Release(ctx context.Context, u *unstructured.Unstructured, gated bool) (bool, error) {
	live := object.New(u.GroupVersionKind())
	if err := e.live.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
		return false, client.IgnoreNotFound(err)
	}

	if !object.HasFinalizer(live) || !resource.Deleting(live) {
		return false, nil
	}

	switch orphan.EndingOf(live) {
	case orphan.Awaited:
		if gated {
			return true, nil
		}
	case orphan.Asked:
		return false, e.writer.RemoveFinalizer(ctx, live)
	case orphan.LeftBehind:
	}

	if err := e.record(ctx, live); err != nil {
		return false, err
	}

	return false, e.writer.RemoveFinalizer(ctx, live)
}

// record records what is orphaned: in a Secret of our namespace, which
// lasts, in events, in the log and in a metric.
func (e *Leftovers) record(ctx context.Context, u *unstructured.Unstructured) error {
	k, err := e.keep(ctx, u, orphan.NewRecord(u, e.now()))
	if err != nil {
		return err
	}

	e.tellOrphaned(ctx, u, k, message.First(
		fmt.Sprintf("External object %s of %s %s is orphaned: %s. Recorded in %s. kubectl kausality adopt",
			orphan.ExternalName(u), u.GetKind(), resource.Name(u), cmp.Or(managed.Kept(u), "its deletion was not allowed"), k.where),
		fmt.Sprintf("External object %s of %s %s is orphaned. kubectl kausality adopt", orphan.ExternalName(u), u.GetKind(), resource.Name(u))))

	return nil
}

// Replaced records the external object that a managed resource leaves behind, which stands for another one from now on.
func (e *Leftovers) Replaced(ctx context.Context, u *unstructured.Unstructured, was v1alpha1.ExternalIdentity) error {
	r := orphan.ReplacedRecord(u, was, e.now())

	k, err := e.keep(ctx, u, r)
	if err != nil {
		return err
	}

	e.tellOrphaned(ctx, u, k, message.First(
		fmt.Sprintf("%s is orphaned: %s %s represents another one now. Recorded in %s. kubectl kausality adopt %s %s",
			identity.Describe(u, was), u.GetKind(), resource.Name(u), k.where, u.GetKind(), r.Object.GetName()),
		fmt.Sprintf("%s is orphaned. kubectl kausality adopt %s %s", identity.Describe(u, was), u.GetKind(), r.Object.GetName())))

	return nil
}

// kept is where a record is.
type kept struct {
	secret *corev1.Secret
	record orphan.Record
	where  string
}

// keep stores a record of what a managed resource leaves behind. What cannot be stored for good
// must not prevent a CRD from going: the log has all it takes.
func (e *Leftovers) keep(ctx context.Context, u *unstructured.Unstructured, r orphan.Record) (kept, error) {
	data, err := r.Data()
	if err != nil {
		return kept{}, fmt.Errorf("cannot record the external object of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.namespace, Name: r.Name(), Labels: map[string]string{orphan.Label: r.Key()},
		},
		Type: orphan.SecretType, Data: data,
	}

	where := "Secret " + secret.GetNamespace() + "/" + secret.GetName()

	switch err := client.IgnoreAlreadyExists(e.writer.Client.Create(ctx, secret)); {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err):
		log.FromContext(ctx).Error(err, "Cannot keep a record of an external object")

		where = "the log of kausality-manager alone"
	case err != nil:
		return kept{}, fmt.Errorf("cannot record the external object of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return kept{secret: secret, record: r, where: where}, nil
}

// tellOrphaned tells of an external object that stays, once.
func (e *Leftovers) tellOrphaned(ctx context.Context, u *unstructured.Unstructured, k kept, text string) {
	about := recorder.Notice{
		Regarding: referTo(u), Reason: string(v1alpha1.EventReasonExternalResourceOrphaned), Action: actionLetGo, Note: text,
	}
	of := about
	of.Regarding, of.Related = corev1.ObjectReference{
		APIVersion: "v1", Kind: "Secret", Namespace: k.secret.GetNamespace(), Name: k.secret.GetName(), UID: k.secret.GetUID(),
	}, about.Regarding

	if e.tell(ctx, of, about) {
		e.log(ctx, "Orphaned an external object", "external", k.record.Object, k.record.Owner, "record", k.where)
	}
}

// reportOrphaned reports a managed resource whose owner goes without it.
func (e *Leftovers) reportOrphaned(ctx context.Context, parent, child *unstructured.Unstructured, d *decision.Decision) {
	f, _ := d.Lead()
	missing := f.Missing()
	head := fmt.Sprintf("%s %s is deleted, and %s %s is orphaned", parent.GetKind(), parent.GetName(), child.GetKind(), child.GetName())
	text := message.First(head+": "+strings.Join(f.Why(), "; ")+". "+remedy, head+". "+remedy)

	about := recorder.Notice{
		Regarding: referTo(parent), Related: referTo(child),
		Reason: string(v1alpha1.EventReasonManagedResourceOrphaned), Action: actionLetGo, Note: text,
	}
	of := about
	of.Regarding, of.Related = about.Related, about.Regarding

	if !e.tell(ctx, about, of) {
		return
	}

	ref, _ := resource.ParentOf(child)
	e.log(ctx, "Let a parent go without its child", "managed", child, ref,
		append(judging.Judged(d), "missing", missing)...)
}

// remedy says what to do about a managed resource that is left.
const remedy = "Give it to another composite resource: kubectl kausality adopt"

// reportOwnerGone reports a managed resource whose owner is gone, however that came.
func (e *Leftovers) reportOwnerGone(ctx context.Context, u *unstructured.Unstructured, ref resource.Reference) error {
	if !resource.IsManaged(u) || gate.MayDelete(u) || gate.AwaitsDelete(u) {
		return nil // It is about to go as well.
	}

	// The cache may be behind.
	parent, err := object.Find(ctx, e.live, e.writer.Client.RESTMapper(), ref)
	if err == nil && string(parent.GetUID()) == ref.UID {
		return nil
	}

	if err != nil && !errors.Is(err, served.ErrGone) {
		return fmt.Errorf("cannot get the parent of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	e.tell(ctx, recorder.Notice{
		Regarding: referTo(u), Related: corev1.ObjectReference{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: types.UID(ref.UID),
		},
		Reason: string(v1alpha1.EventReasonManagedResourceOrphaned), Action: actionLetGo,
		Note: fmt.Sprintf("Its owner %s %s is gone, and it is orphaned. %s", ref.Kind, ref.Name, remedy),
	})

	return nil
}

// log logs and counts what is left, with all it takes to find it again.
func (e *Leftovers) log(ctx context.Context, what, left string, u *unstructured.Unstructured, owner resource.Reference, more ...any) {
	gk := u.GroupVersionKind().GroupKind()
	e.total.WithLabelValues(left, gk.Group, gk.Kind).Inc()

	log.FromContext(ctx).Info(what, append([]any{
		"leftKind", gk.String(), "leftNamespace", u.GetNamespace(), "leftName", resource.Name(u), "leftUID", string(u.GetUID()),
		"externalName", orphan.ExternalName(u), "providerConfig", orphan.ProviderConfig(u), "identity", orphan.Identity(u),
		"ownerKind", owner.GroupKind().String(), "ownerNamespace", owner.Namespace, "ownerName", owner.Name, "ownerUID", owner.UID,
	}, more...)...)
}
