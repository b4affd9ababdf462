// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// edits are the changes of XRs that logs show: by the webhook's decisions about them, or by
// how a function found them one time and another.
type edits struct {
	decided map[generation][]*edit
	// between is what changed since the XR was seen last.
	between map[generation][]*edit
	last    map[xrKey]*unstructured.Unstructured
	byUID   map[string]*edit
}

// generation of an XR.
type generation struct {
	xrKey

	number int64
}

// edit is what one request changed.
type edit struct {
	fields []string
	user   string
	time   time.Time
	// metadata is true where nothing but labels and annotations was.
	metadata bool
	// refused is true where it was not stored in the end.
	refused bool
}

// add adds what a decision of the webhook says of an XR.
func (e *edits) add(d *decisionlog.Decision) {
	old, obj := objectOf(d.Old), objectOf(d.New)
	if d.Operation != request.OperationUpdate || old == nil || obj == nil || !resource.IsComposite(obj) {
		return
	}

	stored := d.Outcome.Do == decision.Allow || d.Outcome.Do == decision.Hold

	if d.By.Part != decisionlog.PartMutate {
		if known := e.byUID[d.By.UID]; known != nil {
			known.refused = known.refused || !stored
		}

		return
	}

	made, spec := changedBy(old, obj, d.Outcome.Held)
	if !stored || len(made.fields) == 0 {
		return
	}

	made.user, made.time = startedBy(d), d.Time
	at := generation{keyOf(old), resource.Generation(old)}

	if spec {
		at.number++
	}

	at.number = max(at.number, resource.Generation(obj))

	if e.decided == nil {
		e.decided, e.byUID = map[generation][]*edit{}, map[string]*edit{}
	}

	e.decided[at] = append(e.decided[at], &made)

	if d.By.UID != "" {
		e.byUID[d.By.UID] = &made
	}
}

// changedBy is what is changed from one version of an XR to another, but for what is put back,
// and whether its generation is another one for that.
func changedBy(old, obj *unstructured.Unstructured, held []v1alpha1.HeldChange) (edit, bool) {
	out, spec := edit{metadata: true}, false

	for _, c := range change.Between(old.Object, obj.Object) {
		if slices.ContainsFunc(held, func(h v1alpha1.HeldChange) bool { return h.Field == c.Field }) {
			continue
		}

		spec = spec || !c.Metadata()

		if ours(c) || !editable(c.Path) {
			continue
		}

		out.metadata = out.metadata && c.Metadata()
		out.fields = appendNew(out.fields, c.Field)
	}

	return out, spec
}

// ours reports whether a change is of one of our own annotations.
func ours(c change.Change) bool {
	if !below(c.Path, fieldMetadata, "annotations") || len(c.Path) < 3 {
		return false
	}

	return strings.HasPrefix(c.Path[2].Field, v1alpha1.AnnotationPrefix)
}

// startedBy is who started what a decision is about; empty where that is not known.
func startedBy(d *decisionlog.Decision) string {
	for i := range d.Outcome.Findings {
		if initiator := d.Outcome.Findings[i].Initiator; initiator != "" {
			return initiator
		}
	}

	if d.User.Name == d.Settings.Crossplane {
		return ""
	}

	return d.User.Name
}

// see sees an XR as a function found it at some time. Those of one log are seen in its order.
func (e *edits) see(xr *unstructured.Unstructured, now time.Time) {
	key := keyOf(xr)
	at := generation{key, resource.Generation(xr)}

	if old := e.last[key]; old != nil && resource.Generation(old) <= at.number {
		if made, _ := changedBy(old, xr, nil); len(made.fields) > 0 {
			if e.between == nil {
				e.between = map[generation][]*edit{}
			}

			made.time = now
			e.between[at] = append(e.between[at], &made)
		}
	}

	if e.last == nil {
		e.last = map[xrKey]*unstructured.Unstructured{}
	}

	e.last[key] = xr
}

// of are the fields that were changed to what an XR is at some time, in a generation, and who
// changed them first; none where that is not known. Once the XR has settled only labels and
// annotations can have been: they leave the generation as it is.
func (e *edits) of(at generation, now time.Time, settled bool) (fields []string, user string) {
	for _, known := range [][]*edit{e.decided[at], e.between[at]} {
		for _, one := range known {
			// A generation says itself when it was made, whatever the clocks say.
			if one.refused || settled && !one.metadata || one.metadata && one.time.After(now) {
				continue
			}

			fields, user = appendNew(fields, one.fields...), cmp.Or(user, one.user)
		}

		if len(fields) > 0 {
			break
		}
	}

	return fields, user
}
