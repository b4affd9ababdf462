// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decisionlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

// Entry is one decision of a log, as lines that end in a newline.
type Entry struct {
	// Digest of what was in force, and its line, which a file needs once.
	Digest  string
	InForce []byte
	// Decision is the line of the decision.
	Decision []byte
}

// Size of an entry in bytes, with what was in force.
func (e *Entry) Size() int { return len(e.InForce) + len(e.Decision) }

// Asked is what there is to know of a decision besides the request.
type Asked struct {
	// By is who decided.
	By By
	// ParentTrimmed is true where the parent is not whole.
	ParentTrimmed bool
	// Answers that were given while it was decided; nil for none.
	Answers *Answers
}

// Encoder encodes decisions. It is safe for concurrent use.
type Encoder struct{ inForce lines }

// Encode encodes a decision on a request, with all that it was made by. Neither is modified,
// and nothing of them is kept.
func (e *Encoder) Encode(asked Asked, req *request.Request, d *decision.Decision) (Entry, error) {
	digest, inForce, err := e.inForce.of(req.Basis)
	if err != nil {
		return Entry{}, err
	}

	out := recordOf(asked, req)
	out.InForce, out.Outcome = digest, OutcomeOf(d)

	for _, f := range d.Findings {
		if req.RepairsNow != nil && req.New != nil && req.RepairsNow(req.New.Object, f.Change) {
			out.Repaired = append(out.Repaired, f.Change.Field)
		}
	}

	line, err := encodeLine(out)
	if err != nil {
		return Entry{}, fmt.Errorf("cannot encode decision: %w", err)
	}

	return Entry{Digest: digest, InForce: inForce, Decision: line}, nil
}

// recordOf is the record of a request.
func recordOf(asked Asked, req *request.Request) *Decision {
	out := &Decision{
		Header: Header{Version, KindDecision}, Time: req.Basis.Now.UTC(), By: asked.By,
		Operation: req.Operation, User: User{Name: req.User.Name, UID: req.User.UID, Groups: req.User.Groups},
		Resource: Resource{Group: req.Resource.Group, Resource: req.Resource.Resource}, Subresource: req.Subresource,
		ComposedResource: req.ComposedResource, Successor: req.Successor, Ungated: req.Ungated,
		Versions: req.Versions, DryRun: req.DryRun, FieldManager: req.FieldManager, Orphans: req.Orphans,
		ParentTrimmed: asked.ParentTrimmed, ParentGone: req.ParentGone, ParentSettles: req.ParentSettles, Action: req.Action,
		Settings: Settings{
			Crossplane: req.Basis.Settings.Crossplane, Manager: req.Basis.Settings.Manager,
			Gates: req.Basis.Settings.Gates,
		},
		ReadsParameters: req.Basis.Params != nil, Authorizes: req.Authorizer != nil,
	}

	out.Settings.WithoutLateInitialize = req.Basis.Settings.WithoutLateInitialize.Texts()
	out.Settings.Identity = req.Basis.Settings.Identity.Texts()

	out.setObjects(req)

	if a := asked.Answers; a != nil {
		a.mu.Lock()
		out.Parameters, out.Checks = slices.Clone(a.parameters), slices.Clone(a.checks)
		out.Masked = out.Masked || a.masked
		a.mu.Unlock()
	}

	return out
}

// setObjects sets the objects of a request, with credentials masked.
func (d *Decision) setObjects(req *request.Request) {
	var m masking

	// By its managedFields it is known how the lists of the old object are merged, and who
	// wrote what. Those of the others say nothing.
	old, obj := objectOf(req.Old), withoutManagedFields(objectOf(req.New))

	d.Old, d.New = m.object(old, obj), m.object(obj, old)
	parent := withoutManagedFields(objectOf(req.Parent))
	d.Parent, d.Namespace = m.object(parent), m.object(withoutManagedFields(objectOf(req.Namespace)))
	d.Options = m.object(req.Options)
	d.User.Extra = m.extra(req.User.Extra)

	m.maskAnnotations(d.Old, old)
	m.maskAnnotations(d.New, obj)
	m.maskAnnotations(d.Parent, parent)

	d.Masked = m.masked()

	renumber(d.Old, d.New, d.Parent)
}

func objectOf(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}

	return u.Object
}

// encodeLine encodes a line, with its end.
func encodeLine(v any) ([]byte, error) {
	var out bytes.Buffer

	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)

	if err := enc.Encode(v); err != nil {
		return nil, err
	}

	return out.Bytes(), nil
}

// DroppedLine is the line that says how many decisions were left out.
func DroppedLine(decisions int64) []byte {
	line, err := encodeLine(Dropped{Header: Header{Version, KindDropped}, Decisions: decisions})
	if err != nil {
		return nil // It is a number.
	}

	return line
}
