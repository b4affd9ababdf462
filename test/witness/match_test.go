// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package witness_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// hansName is who may ask for changes.
const hansName = "hans@example.com"

// A statement is one that the server has executed, or several in one string.
type statement struct {
	at       time.Time
	user     string
	database string
	text     string
	// failed is why it was not executed.
	failed string
}

func (s statement) String() string {
	text := fmt.Sprintf("%s %s@%s: %s", s.at.Format("15:04:05.000"), s.user, s.database, s.text)
	if s.failed != "" {
		text += " -- failed: " + s.failed
	}

	return text
}

// A deed is what a statement does: to which kind of resource, and to which of its
// fields, and with which value; "create" and "delete" are fields, too.
type deed struct{ kind, field, value string }

// forms are all forms of statements that the provider has, for a tenant NAME. What
// is in parentheses is the value.
var forms = []struct {
	deed deed
	text string
}{
	{deed{kindRole, "create", ""}, `CREATE ROLE NAME LOGIN NOCREATEDB CONNECTION LIMIT \d+`},
	{deed{kindDatabase, "create", ""}, `CREATE DATABASE NAME TEMPLATE "template0" CONNECTION LIMIT \d+`},
	{deed{kindView, "create", ""}, `CREATE MATERIALIZED VIEW NAME AS .*`},
	{deed{kindGrant, "create", ""}, `GRANT CONNECT ON DATABASE NAME TO NAME`},
	{deed{kindRole, "delete", ""}, `DROP ROLE NAME`},
	{deed{kindDatabase, "delete", ""}, `DROP DATABASE NAME WITH \(FORCE\)`},
	{deed{kindView, "delete", ""}, `DROP MATERIALIZED VIEW NAME`},
	{deed{kindGrant, "delete", ""}, `REVOKE ALL PRIVILEGES ON DATABASE NAME FROM NAME`},
	{deed{kindRole, "spec.forProvider.connectionLimit", ""}, `ALTER ROLE NAME CONNECTION LIMIT (-?\d+)`},
	{deed{kindDatabase, "spec.forProvider.connectionLimit", ""}, `ALTER DATABASE NAME CONNECTION LIMIT (-?\d+)`},
	{deed{kindDatabase, "spec.forProvider.comment", ""}, `COMMENT ON DATABASE NAME IS '(.*)'`},
	{deed{kindView, "spec.forProvider.query", ""}, `BEGIN; DROP MATERIALIZED VIEW NAME; CREATE MATERIALIZED VIEW NAME AS (.*); COMMIT`},
}

// deedOf reads a statement about a tenant.
func deedOf(name, text string) (deed, error) {
	for _, f := range forms {
		form := regexp.MustCompile("(?s)^" + strings.ReplaceAll(f.text, "NAME", regexp.QuoteMeta(`"`+name+`"`)) + "$")

		if m := form.FindStringSubmatch(text); m != nil {
			d := f.deed
			if len(m) > 1 {
				d.value = m[1]
			}

			return d, nil
		}
	}

	return deed{}, fmt.Errorf("nobody knows what this is: %s: %w", text, world.ErrOther)
}

// An asking is something that somebody asked for who may: a value of a field with
// a ticket, or, without a field, a window for all that differs outside.
type asking struct {
	deed

	at             time.Time
	ticket, window string
	// approval is the ChangeApproval of what was changed outside.
	approval string
}

// opener names what opens a gate for it.
func (a asking) opener() string { return a.ticket + a.window + a.approval }

// A judge says of the statements of a tenant whether each was asked for, once.
type judge struct {
	name   string
	seen   *history
	asked  []asking
	killed []time.Time

	// last is when a deed was done last, matched which trace or window each
	// statement was matched to.
	last    map[deed]time.Time
	spent   map[string]time.Time
	foreign map[string]time.Time
	matched []string
}

// judge matches what was executed for a tenant, and returns what cannot be.
func (j *judge) judge(executed []statement) (wrong []string) {
	j.last, j.spent, j.foreign = map[deed]time.Time{}, map[string]time.Time{}, map[string]time.Time{}

	for _, s := range executed {
		if s.failed != "" || !strings.Contains(s.text, `"`+j.name+`"`) {
			continue
		}

		d, err := deedOf(j.name, s.text)
		if s.user != stack.PostgreSQLProvider {
			j.foreign[d.kind+d.field] = s.at

			continue
		}

		by := ""
		if err == nil {
			by, err = j.match(s, d)
		}

		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", s, err))
		}

		j.last[d] = s.at
		j.matched = append(j.matched, fmt.Sprintf("%s  <- %s", s, by))
	}

	return wrong
}

// match finds what a statement was executed for.
func (j *judge) match(s statement, d deed) (string, error) {
	drifted := j.foreign[d.kind+d.field]
	delete(j.foreign, d.kind+d.field) // It is put right, or written over.

	a, ok := j.asking(d, s.at)

	switch again, was := j.last[d]; {
	case d.field == "create" || d.field == "delete":
		return j.traced(s, d, "", again, was)
	case ok && (!was || a.at.After(again)):
		return j.traced(s, d, a.ticket, time.Time{}, false)
	case ok && drifted.IsZero():
		return j.traced(s, d, a.ticket, again, was)
	case drifted.IsZero():
		return "", fmt.Errorf("%q was not asked for: %w", d.value, world.ErrOther)
	default:
		return j.repair(s, d, drifted)
	}
}

// asking is the last time that somebody asked for a value before a time.
func (j *judge) asking(d deed, before time.Time) (a asking, ok bool) {
	for _, one := range j.asked {
		if one.deed == d && one.at.Before(before) {
			a, ok = one, true
		}
	}

	return a, ok
}

// traced finds the one trace that a statement belongs to. It is executed once for
// it, unless the provider was killed since, and had to do it again.
func (j *judge) traced(s statement, d deed, ticket string, again time.Time, was bool) (string, error) {
	of := subject{d.kind, j.name}

	causes := j.seen.ofValue(of, d)
	if d.value == "" {
		causes = j.seen.of(of, d.field, "")
	}

	if len(causes) != 1 {
		return "", fmt.Errorf("%d traces of it: %+v: %w", len(causes), causes, world.ErrOther)
	}

	c := causes[0]

	switch {
	case c.initiator != hansName:
		return "", fmt.Errorf("it is traced to %q: %w", c.initiator, world.ErrOther)
	case d.value != "" && c.ticket != ticket && !j.overtakes(d, ticket, c.ticket, s.at):
		return "", fmt.Errorf("it is traced to ticket %q, want %q: %w", c.ticket, ticket, world.ErrOther)
	}

	if was && !j.killedBetween(again.Add(-slowest), s.at) {
		return "", fmt.Errorf("it was executed for the same ticket %q at %s: %w", ticket, again, world.ErrOther)
	}

	return fmt.Sprintf("%s of generation %d, ticket %q, requested by %s", c.field, c.generation, c.ticket, c.initiator), nil
}

// overtakes reports whether one ticket is of the same field as another, and from after
// that: an allowance of a newer generation takes the place of an older one, also
// where Crossplane was at the older change still.
func (j *judge) overtakes(d deed, ticket, later string, before time.Time) bool {
	found := false

	for _, a := range j.asked {
		if a.kind != d.kind || a.field != d.field || a.at.After(before) {
			continue
		}

		if found && a.ticket == later {
			return true
		}

		found = found || a.ticket == ticket
	}

	return false
}

// slowest is how long a statement takes that is not waited for.
const slowest = 10 * time.Second

// repair finds what let the provider put right what somebody else changed: one of
// what was asked for of the same resource since, each of which does so once. The
// newest may not have opened the gate yet.
func (j *judge) repair(s statement, d deed, drifted time.Time) (string, error) {
	wrong := fmt.Errorf("it was put right though nothing was asked for since %s: %w", drifted, world.ErrOther)

	for _, by := range slices.Backward(j.asked) {
		if !by.at.After(drifted) || !by.at.Before(s.at) || (by.kind != d.kind && by.window == "" && by.approval == "") {
			continue
		}

		if wrong = j.opens(s, d, by); wrong == nil {
			j.spent[d.kind+d.field+by.opener()] = s.at

			return "put right for " + by.opener(), nil
		}
	}

	return "", wrong
}

// opens returns an error if a statement was not executed while something asked for
// had the gate open, or was so before.
func (j *judge) opens(s statement, d deed, by asking) error {
	of := subject{d.kind, j.name}

	switch {
	case by.window != "" && !j.seen.openedBy(of, by.window):
		return fmt.Errorf("no trace of window %q: %w", by.window, world.ErrOther)
	case by.window == "" && by.approval == "" && len(j.seen.of(of, by.field, by.ticket)) != 1:
		return fmt.Errorf("no trace of ticket %q: %w", by.ticket, world.ErrOther)
	}

	if last, ok := j.spent[d.kind+d.field+by.opener()]; ok && !j.killedBetween(last.Add(-slowest), s.at) {
		return fmt.Errorf("it was put right for %q at %s already: %w", by.opener(), last, world.ErrOther)
	}

	return nil
}

func (j *judge) killedBetween(from, to time.Time) bool {
	for _, at := range j.killed {
		if at.After(from) && at.Before(to) {
			return true
		}
	}

	return false
}
