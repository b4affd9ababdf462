// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// discriminator is the field that says which of the fields beside it count.
const discriminator = "type"

// choices are the fields of which each map has one member of several, and none
// that says which.
//
// Source: k8s.io/api core/v1 Volume, VolumeProjection, EnvVar, EnvFromSource, Probe,
// LifecycleHandler; networking/v1 IngressBackend, ServiceBackendPort,
// NetworkPolicyPeer.
func choices() []string {
	return []string{
		"volumes", "sources", "env", "envFrom", "livenessProbe", "readinessProbe", "startupProbe", "postStart", "preStop",
		"backend", "defaultBackend", "port", "from", "to",
	}
}

// oneChoice reports whether two changes are parts of one choice among the members of
// a map.
func oneChoice(old, whole *unstructured.Unstructured, a, b change.Change) bool {
	n := 0
	for n < min(len(a.Path), len(b.Path)) && a.Path[n] == b.Path[n] {
		n++
	}

	if a.Gone || b.Gone || a.Joined || b.Joined || n == 0 || n == min(len(a.Path), len(b.Path)) || a.Path[n].Type != fieldpath.SegmentField {
		return false
	}

	was := a.Path
	if a.Was != nil {
		was = a.Was
	}

	c := choice{old: mapAt(old.Object, was[:n]), asked: mapAt(whole.Object, a.Path[:n])}
	x, y := a.Path[n].Field, b.Path[n].Field

	if c.typed() {
		return c.part(x) && c.part(y)
	}

	// What defaults left of a member may still be there, though it is to go.
	return amongChoices(a.Path[:n]) && (a.Addition() && b.Removal() || a.Removal() && b.Addition())
}

// oneName reports whether two changes are of an element that is to go and of one that is to come, in one list, with one name: the key
// is another one, such as the port of a Service.
func oneName(old, whole *unstructured.Unstructured, a, b change.Change) bool {
	if b.Gone {
		a, b = b, a
	}

	if !a.Gone || !b.Joined || a.List() != b.List() {
		return false
	}

	was := a.Element()
	if a.Was != nil {
		was = a.Was[:len(was)]
	}

	name := mapAt(old.Object, was)["name"]

	return name != nil && change.Equal(name, mapAt(whole.Object, b.Element())["name"])
}

// choice is a map of which one member counts, before and after.
type choice struct {
	old, asked map[string]any
}

// typed reports whether the map says that another of its members counts.
func (c choice) typed() bool {
	was, is := c.old[discriminator], c.asked[discriminator]

	return (was != nil || is != nil) && !change.Equal(was, is)
}

// part reports whether a member depends on the map's type: by its name, which
// begins as the type does, or as an object that is added or removed with it. In a map of
// labels, type is one of many.
func (c choice) part(member string) bool {
	_, was := c.old[member].(map[string]any)
	_, is := c.asked[member].(map[string]any)

	return member == discriminator || named(member, c.old[discriminator]) || named(member, c.asked[discriminator]) ||
		was && c.removed(member) || is && c.added(member)
}

// named reports whether the name of a member begins as a type does.
func named(member string, typ any) bool {
	name, _ := typ.(string)

	return name != "" && len(member) >= len(name) && strings.EqualFold(member[:len(name)], name)
}

func (c choice) added(member string) bool { return c.old[member] == nil && c.asked[member] != nil }

func (c choice) removed(member string) bool { return c.old[member] != nil && c.asked[member] == nil }

// amongChoices reports whether the map at a path is one of [choices], or an element
// of one.
func amongChoices(at change.Path) bool {
	i := len(at) - 1
	if at[i].Type == fieldpath.SegmentIndex && i > 0 {
		i--
	}

	return at[i].Type == fieldpath.SegmentField && slices.Contains(choices(), at[i].Field)
}

// mapAt is the map at a path of an object; nil where there is none.
func mapAt(object map[string]any, at change.Path) map[string]any {
	var v any = object

	for _, s := range at {
		switch t := v.(type) {
		case map[string]any:
			v = t[s.Field]
		case []any:
			if s.Type != fieldpath.SegmentIndex || s.Index >= uint(len(t)) {
				return nil
			}

			v = t[s.Index]
		default:
			return nil
		}
	}

	m, _ := v.(map[string]any)

	return m
}
