// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package random_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/provider/external"
)

// Fields of a change that are no fields of an external object.
const (
	fieldCreate = v1alpha1.MutationCreate
	fieldDelete = v1alpha1.MutationDelete
)

// values are those of an external object, by field.
type values map[string]string

// approvable is a change as somebody saw it listed before they decided about it.
type approvable struct {
	// name of the managed resource, and its UID; one that is to be made has none.
	name, uid string
	// field that is to change, or create or delete.
	field string
	// from is the value that the field had, value the one it is to have, and made are all of what is
	// to be made.
	from, value string
	made        values
}

// verdict is a ChangeApproval: who decided what, and for how long that stood.
type verdict struct {
	name, uid, user string
	rejects         bool
	at              time.Time
	// stored is when it was made as it says itself, in whole seconds.
	stored time.Time
	// ended is when it was deleted; zero where it was not.
	ended   time.Time
	changes []approvable
	// void is true of one that grants nothing, ever: made once more under a name that was used.
	void bool
	// loose is true of one that was made of what was listed once: it may be about nothing.
	loose bool
}

// late is how long after an approval was withdrawn the provider may make what it was for: that was
// let through already, and processes die meanwhile.
const late = 30 * time.Second

// asking is what somebody asks for: a value of a field of a managed resource.
type asking struct {
	at time.Time
	// name of the managed resource.
	name string
	// field is one of its fields, with its value; or create, where it is to be there, or delete.
	field, value string
	// allowed is true where a policy lets them.
	allowed bool
}

// call is one of the provider that was to change something outside.
type call struct {
	name, uid string
	verb      external.Verb
	at        time.Time
	payload   values
	// approvals are the names of those that the managed resource says it is for.
	approvals []string
}

// ledger is all that is known of what was asked for, decided and done, each in the order of its
// times, and none of it by what Kausality says of itself.
type ledger struct {
	calls    []call
	askings  []asking
	verdicts []verdict
	// outside are the external objects at the end, when nothing is under way.
	outside map[string]values
}

// wrong says what was done that nobody allowed, and what was approved and not done.
func (l *ledger) wrong() []string {
	return slices.Concat(l.unallowed(), l.unknown(), l.lost())
}

// unallowed are calls that no policy and no approval is for: each value that a managed resource
// comes to is one that was asked for by who may, or approved, since it had it the last time.
func (l *ledger) unallowed() []string {
	var out []string

	for _, name := range l.names() {
		uid, is, since := "", values(nil), map[string]time.Time{}

		for _, c := range l.calls {
			if c.name != name {
				continue
			}

			if c.uid != uid {
				uid, is = c.uid, nil
			}

			if c.verb == external.Delete {
				out = append(out, l.judge(c, fieldDelete, "", time.Time{})...)

				continue
			}

			// 1. What is made is made of what was approved, and else as it was asked for.
			if is == nil {
				out = append(out, l.judge(c, fieldCreate, "", since[fieldCreate])...)
				is, since[fieldCreate] = l.initial(c), c.at
			}

			// 2. What differs.
			for _, field := range differing(is, c.payload) {
				key := c.uid + " " + field + "=" + c.payload[field]
				out = append(out, l.judge(c, field, c.payload[field], since[key])...)
				since[key] = c.at
			}

			is = c.payload
		}
	}

	return out
}

// judge says what is wrong with a call that brings a value, which the object had last since a time.
func (l *ledger) judge(c call, field, value string, since time.Time) []string {
	if slices.ContainsFunc(l.askings, func(a asking) bool {
		return a.allowed && a.name == c.name && a.field == field && a.value == value && a.at.After(since) && !a.at.After(c.at)
	}) {
		return nil
	}

	used, rejected, withdrawn := false, false, false

	for _, v := range l.verdicts {
		if v.rejects || v.void || v.at.After(c.at) || !slices.ContainsFunc(v.changes, func(a approvable) bool { return a.is(c, field, value) }) {
			continue
		}

		switch {
		case !v.at.After(since):
			used = true
		case !v.ended.IsZero() && v.ended.Add(late).Before(c.at):
			withdrawn = true
		case l.rejectedAllAlong(v, c, field, value):
			rejected = true
		default:
			return nil
		}
	}

	what := fmt.Sprintf("%s %s of %s %s at %s", c.verb, strings.TrimSuffix(field+"="+value, "="), c.name, c.uid, c.at.Format("15:04:05.000"))

	switch {
	case rejected:
		return []string{what + ": its approval was rejected all along"}
	case withdrawn:
		return []string{what + ": its approval was withdrawn long before"}
	case used:
		return []string{what + ": its approval was used before"}
	default:
		return []string{what + ": no policy allows it, and nobody approved it"}
	}
}

// is reports whether a change is the one that a call brings.
func (a approvable) is(c call, field, value string) bool {
	return a.name == c.name && a.field == field && a.value == value && (a.uid == "" || a.uid == c.uid)
}

// initial are the values that an object was to be made with: those of the newest approval, or
// those of the call, where it was asked for by who may.
func (l *ledger) initial(c call) values {
	var (
		at time.Time
		is = c.payload
	)

	for _, a := range l.askings {
		if a.allowed && a.name == c.name && a.field == fieldCreate && !a.at.After(c.at) && a.at.After(at) {
			at, is = a.at, c.payload
		}
	}

	for _, v := range l.verdicts {
		for _, a := range v.changes {
			if !v.rejects && !v.void && !v.at.After(c.at) && v.at.After(at) && a.name == c.name && a.field == fieldCreate {
				at, is = v.at, a.made
			}
		}
	}

	return is
}

// rejectedAllAlong reports whether there was no moment from an approval to what was made of it at
// which nobody's rejection stood.
func (l *ledger) rejectedAllAlong(v verdict, c call, field, value string) bool {
	moments := []time.Time{v.at, c.at}

	for _, r := range l.verdicts {
		switch {
		case r.rejects && !r.ended.IsZero():
			moments = append(moments, r.ended)
		case !r.rejects:
			moments = append(moments, r.at)
		}
	}

	for _, m := range moments {
		if !m.Before(v.at) && !m.After(c.at) && !l.rejectedAt(m, true, func(a approvable) bool { return a.is(c, field, value) }) {
			return false
		}
	}

	return true
}

// rejectedAt reports whether a rejection of a change stands at a time: its user has not withdrawn
// it, nor approved the change since. Where the change was asked for all along that is certain: one
// of a change that was taken back before it was looked at stands for nothing.
func (l *ledger) rejectedAt(t time.Time, certain bool, which func(approvable) bool) bool {
	for _, r := range l.verdicts {
		i := slices.IndexFunc(r.changes, which)
		if !r.rejects || i < 0 || r.at.After(t) || !r.ended.IsZero() && !r.ended.After(t) || certain && !l.wishedFrom(r.changes[i], r.at, t) {
			continue
		}

		if !slices.ContainsFunc(l.verdicts, func(v verdict) bool {
			// Of two within one second the rejection counts.
			return !v.rejects && v.user == r.user && v.at.After(r.at) && (certain || v.stored.After(r.stored)) && !v.at.After(t) && slices.ContainsFunc(v.changes, which)
		}) {
			return true
		}
	}

	return false
}

// wish is what is asked for of a field of an object at a time, by whomever; and since when.
func (l *ledger) wish(name, field string, t time.Time) (value string, since time.Time) {
	for _, a := range l.askings {
		if a.name != name || a.field != field || a.at.After(t) {
			continue
		}

		if since.IsZero() || a.value != value {
			value, since = a.value, a.at
		}
	}

	return value, since
}

// present reports whether an object is asked for at a time, and since when that is so.
func (l *ledger) present(name string, t time.Time) (is bool, since time.Time) {
	for _, a := range l.askings {
		if a.name != name || a.field != fieldCreate && a.field != fieldDelete || a.at.After(t) {
			continue
		}

		if asked := a.field == fieldCreate; since.IsZero() || asked != is {
			is, since = asked, a.at
		}
	}

	return is, since
}

// wishedFrom reports whether a change is asked for from one time to another.
func (l *ledger) wishedFrom(a approvable, from, to time.Time) bool {
	is, since := l.present(a.name, to)
	if since.After(from) || is == (a.field == fieldDelete) {
		return false
	}

	check := a.made

	switch a.field {
	case fieldDelete:
		return true
	case fieldCreate:
	default:
		check = values{a.field: a.value}
	}

	for field, want := range check {
		if value, since := l.wish(a.name, field, to); value != want || since.After(from) {
			return false
		}
	}

	return true
}

// unknown are approvals that a managed resource says a call is for, and nobody made, or that are
// for another object.
func (l *ledger) unknown() []string {
	var out []string

	for _, c := range l.calls {
		for _, name := range c.approvals {
			of := func(v verdict) bool { return v.name == name }
			covers := func(a approvable) bool { return a.name == c.name && (a.uid == "" || a.uid == c.uid) }

			switch {
			case !slices.ContainsFunc(l.verdicts, of):
				out = append(out, fmt.Sprintf("%s of %s at %s is for ChangeApproval %q, which nobody made", c.verb, c.name, c.at.Format("15:04:05.000"), name))
			case !slices.ContainsFunc(l.verdicts, func(v verdict) bool { return of(v) && !v.rejects && slices.ContainsFunc(v.changes, covers) }):
				out = append(out, fmt.Sprintf("%s of %s at %s is for ChangeApproval %q, which approves nothing of it", c.verb, c.name, c.at.Format("15:04:05.000"), name))
			}
		}
	}

	return out
}

// lost are approvals that stand, of what was asked for ever since, and is not outside.
func (l *ledger) lost() []string {
	var out []string

	end := l.end()

	for _, v := range l.verdicts {
		if v.rejects || v.void || v.loose || !v.ended.IsZero() {
			continue
		}

		for _, a := range v.changes {
			if !l.wishedFrom(a, v.at, end) || l.rejectedAt(end, false, func(o approvable) bool {
				return o.name == a.name && o.uid == a.uid && o.field == a.field && o.value == a.value
			}) {
				continue
			}

			is, there := l.outside[a.name]

			var done bool

			switch a.field {
			case fieldDelete:
				done = !there
			case fieldCreate:
				done = there && len(differing(a.made, is)) == 0
			default:
				// From another value it is another change: somebody who may has set that before.
				done = there && (is[a.field] == a.value || is[a.field] != a.from)
			}

			if !done {
				out = append(out, fmt.Sprintf("%s of %s was approved by %s at %s, by ChangeApproval %q, and asked for ever since: outside there is %v",
					strings.TrimSuffix(a.field+"="+a.value, "="), a.name, v.user, v.at.Format("15:04:05.000"), v.name, is))
			}
		}
	}

	return out
}

// end is after all that happened.
func (l *ledger) end() time.Time {
	var end time.Time

	later := func(t time.Time) {
		if t.After(end) {
			end = t
		}
	}

	for _, c := range l.calls {
		later(c.at)
	}

	for _, a := range l.askings {
		later(a.at)
	}

	for _, v := range l.verdicts {
		later(v.at)
		later(v.ended)
	}

	return end.Add(time.Second)
}

// names of the managed resources that there were calls for.
func (l *ledger) names() []string {
	var out []string

	for _, c := range l.calls {
		if !slices.Contains(out, c.name) {
			out = append(out, c.name)
		}
	}

	return out
}

// differing are the fields of which two objects have different values, in order.
func differing(a, b values) []string {
	out := map[string]bool{}

	for field := range a {
		out[field] = true
	}

	for field := range b {
		out[field] = true
	}

	maps.DeleteFunc(out, func(field string, _ bool) bool { return a[field] == b[field] })

	return slices.Sorted(maps.Keys(out))
}
