// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/internal/parameter"
	"github.com/kausality-io/kausality-crossplane/webhook/cached"
)

// Judge puts admission requests to the engine. The endpoints share one.
type Judge struct {
	// Inputs are the policies, windows and Enforcements.
	Inputs *cached.Inputs
	// Objects reads parents and namespaces.
	Objects *cached.Objects
	// Live reads from the API server what a request itself does not carry.
	Live client.Reader
	// Writer stamps what a request cannot carry: deletions and scalings.
	Writer Writer
	// Events are recorded on what is held up.
	Events events.EventRecorder
	// Metrics count and time decisions.
	Metrics *Metrics
	// Authorizer is asked for Permissions; nil grants nobody by one.
	Authorizer authorizer.UnconditionalAuthorizer
	// Parameters reads those of policies; nil has nobody read them.
	Parameters *parameter.Reader
	// Versions finds out in which ones resources are served; nil where nobody can.
	Versions func(context.Context, schema.GroupResource) []string
	// Patches reports whether the manager may patch a resource: what it may not move nobody else is to move for it;
	// nil where it may patch all.
	Patches func(context.Context, schema.GroupResource) bool
	// Settings of the installation.
	Settings request.Settings
	// Decisions logs each with all that it was made by; nil to have that not logged.
	Decisions DecisionLog
	// Refusals hears of requests that are refused; nil for nobody.
	Refusals Refusals
	// Log of decisions, for people.
	Log logr.Logger
	// Now is the clock.
	Now func() time.Time
}

// DecisionLog logs decisions. It does not wait, and keeps nothing of what it is given.
type DecisionLog interface {
	Record(asked decisionlog.Asked, req *request.Request, d *decision.Decision)
}

// Refusals hears of requests that are refused. It does not wait, and keeps nothing of what it is given.
type Refusals interface {
	Refused(req *request.Request, d *decision.Decision)
}

// Writer writes objects and their status.
type Writer interface {
	client.Writer
	client.StatusClient
}

// errNotObject is the cause when what is to be stored is not a JSON object.
var errNotObject = errors.New("it is not a JSON object")

// request gathers what the engine needs of an admission request, but for the
// parent. Where what is in force cannot be read, it is what was in force last,
// beside the error; where nothing was, or the request makes no sense, it is nil.
func (j *Judge) request(ctx context.Context, req admission.Request) (*request.Request, error) {
	out, err := requestOf(req)
	if err != nil {
		return nil, err
	}

	in, err := j.Inputs.Get(ctx)
	if in == nil {
		return nil, err
	}

	for _, err := range in.Snapshot.Set.Bad {
		j.Log.V(1).Info("Ignored what does not compile", "problem", err.Error())
	}

	out.Basis = in.Snapshot.Set.Basis(j.Settings, j.Now())

	if input.MovesGate(out) && j.Patches != nil {
		out.Basis.Settings.Gates = j.Patches(ctx, out.Resource)
	}

	out.Basis.Params, out.Authorizer = j.outside(ctx)
	out.Versions = j.versions(ctx, req, out)

	return out, err
}

// versions are those in which what a request is about is served, where an Enforcement
// asks for that; nil where it is not known. That which the request is made in is one of them.
func (j *Judge) versions(ctx context.Context, req admission.Request, ask *request.Request) []string {
	if !ask.AsksVersions() || j.Versions == nil {
		return nil
	}

	out := j.Versions(ctx, ask.Resource)
	made := req.RequestResource

	if len(out) > 0 && made != nil && (schema.GroupResource{Group: made.Group, Resource: made.Resource}) == ask.Resource {
		out = append(slices.Clip(out), made.Version)
	}

	return out
}

// requestOf reads what an admission request says.
func requestOf(req admission.Request) (*request.Request, error) {
	out := &request.Request{
		Operation: request.Operation(req.Operation),
		User:      policy.User{Name: req.UserInfo.Username, Groups: req.UserInfo.Groups, UID: req.UserInfo.UID},
		Resource:  schema.GroupResource{Group: req.Resource.Group, Resource: req.Resource.Resource},

		Subresource: req.SubResource,
		DryRun:      ptr.Deref(req.DryRun, false),
	}

	for key, values := range req.UserInfo.Extra {
		if out.User.Extra == nil {
			out.User.Extra = map[string][]string{}
		}

		out.User.Extra[key] = values
	}

	var err error
	if out.Old, err = decode(req.OldObject); err != nil {
		return nil, fmt.Errorf("cannot read the old object: %w", err)
	}

	if out.New, err = decode(req.Object); err != nil {
		return nil, fmt.Errorf("cannot read the object: %w", err)
	}

	if out.Orphans, err = orphans(req); err != nil {
		return nil, fmt.Errorf("cannot read the options: %w", err)
	}

	if out.Options, err = optionsOf(req); err != nil {
		return nil, fmt.Errorf("cannot read the options: %w", err)
	}

	out.FieldManager = resource.String(out.Options, "fieldManager")

	return out, nil
}

// optionsOf are those of a request; nil where it has none.
func optionsOf(req admission.Request) (map[string]any, error) {
	var out map[string]any
	if len(req.Options.Raw) == 0 {
		return out, nil
	}

	err := utiljson.Unmarshal(req.Options.Raw, &out)

	return out, err
}

// orphans reports whether a deletion is to leave what the object owns.
func orphans(req admission.Request) (bool, error) {
	if req.Operation != admissionv1.Delete || len(req.Options.Raw) == 0 {
		return false, nil
	}

	opts := metav1.DeleteOptions{}
	if err := utiljson.Unmarshal(req.Options.Raw, &opts); err != nil {
		return false, err
	}

	how, old := opts.PropagationPolicy, opts.OrphanDependents //nolint:staticcheck // Old clients say it so.

	return how != nil && *how == metav1.DeletePropagationOrphan || old != nil && *old, nil
}

// An entryPoint decides requests in the name of a part of Kausality.
type entryPoint struct {
	part decisionlog.Part
	// stored is true where the objects are as they would be stored, see [decision.Verify].
	stored bool
}

// decide decides a request by the facts there are of it.
func (e entryPoint) decide(ask *request.Request) decision.Decision {
	if e.stored {
		return decision.Verify(*ask)
	}

	return decision.Decide(*ask)
}

// by decides a request at an entry point, and logs what is decided.
func (j *Judge) by(ctx context.Context, at entryPoint, req admission.Request, ask *request.Request) (decision.Decision, error) {
	if j.Decisions == nil {
		return j.look(ctx, at, ask)
	}

	params, asked := ask.Basis.Params, ask.Authorizer
	defer func() { ask.Basis.Params, ask.Authorizer = params, asked }()

	answers := &decisionlog.Answers{}
	answers.Watch(ask)

	d, err := j.look(ctx, at, ask)
	if err == nil {
		j.Decisions.Record(decisionlog.Asked{
			By: decisionlog.By{Part: at.part, Stored: at.stored, UID: string(req.UID)}, Answers: answers,
			ParentTrimmed: ask.Parent != nil && !ask.ReadsParent(),
		}, ask, &d)
	}

	return d, err
}

// look decides by what the informers know, and once more by what is so now where they
// may be behind: nothing is refused on stale data, and no child's change is put down to
// the controller that makes it while somebody asked for it above. For what is in Shadow mode
// alone nothing is read: it would not forbid what the parent allows.
func (j *Judge) look(ctx context.Context, at entryPoint, ask *request.Request) (decision.Decision, error) {
	namespace := resource.String(cached.ObjectOf(ask).Object, "metadata", "namespace")

	var err error
	if ask.Namespace, err = j.namespace(ctx, ask, namespace); err != nil {
		return decision.Decision{}, err
	}

	ref, ok := resource.ParentIn(ask.Old, ask.New)
	if !ok {
		return at.decide(ask), nil
	}

	in, err := j.Inputs.Get(ctx)
	if err != nil {
		return decision.Decision{}, err
	}

	j.Objects.Governed.Learn(ask)

	gvk, key := cached.KeyOf(ref)

	if ask.Parent, ok = j.Objects.Parent(ctx, in.Kinds, gvk, key); ok && ref.Is(ask.Parent) && !ask.ReadsParent() {
		if d := at.decide(ask); d.Allowed() && d.Conflict == "" && !request.Behind(ask) && !d.Initiated() {
			return d, nil
		}
	}

	j.Metrics.readAgain(gvk)

	if ask.Parent, err = j.Objects.Read(ctx, gvk, key, ask.ReadsParent() || ask.ShadowReadsParent()); err != nil {
		obj := cached.ObjectOf(ask)

		return decision.Decision{}, fmt.Errorf("cannot look at the parent of %s %q: %w", obj.GetKind(), resource.Name(obj), err)
	}

	return at.decide(ask), nil
}

// decode reads an object, unless an [Endpoint] did; nil for none.
func decode(in runtime.RawExtension) (*unstructured.Unstructured, error) {
	if u, ok := in.Object.(*unstructured.Unstructured); ok {
		return u, nil
	}

	raw := in.Raw
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil //nolint:nilnil // No object is no error.
	}

	var object map[string]any
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return nil, err
	}

	if object == nil {
		return nil, errNotObject
	}

	return &unstructured.Unstructured{Object: object}, nil
}
