// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

// Severity is how much a finding matters.
type Severity string

// Severities, from the greatest.
const (
	// Error is what admission refuses.
	Error Severity = "error"
	// Warning is what admission lets pass though it does not do what it says, as far as that is
	// certain: what statuses, and warnings of kubectl apply, tell of.
	Warning Severity = "warning"
	// Note is what may be meant as it is, or depends on what else is in the cluster.
	Note Severity = "note"
)

// Rank orders severities: 0 is the greatest.
func (s Severity) Rank() int {
	switch s {
	case Error:
		return 0
	case Warning:
		return 1
	default:
		return 2
	}
}

// Rule is one thing that is looked for. Its name is a contract: it is never given to
// another one.
type Rule struct {
	// ID of the rule.
	ID string
	// Severity of its findings.
	Severity Severity
	// Text says what it finds, in one sentence.
	Text string
}

// IDs of rules.
const (
	UnknownKind  = "unknown-kind"
	UnknownField = "unknown-field"
	Schema       = "schema"
	SchemaRule   = "schema-rule"
	CELCompile   = "cel-compile"
	FieldPath    = "field-path"
	Selector     = "label-selector"
	InvalidValue = "invalid-value"

	DuplicateKey     = "duplicate-key"
	DuplicateObject  = "duplicate-object"
	UnreadableSchema = "unreadable-schema"
	UnknownPath      = "unknown-path"
	CELType          = "cel-type"
	ExternalVerb     = "external-verb"
	Unreachable      = "unreachable"
	MetBelow         = "met-below"
	ApprovalIdle     = "approval-idle"
	BindingPolicy    = "binding-policy"
	BindingSubject   = "binding-subject"
	WindowIdle       = "window-idle"
	WindowOver       = "window-over"
	ExceptionOver    = "exception-over"

	NotChecked        = "not-checked"
	ChainEnds         = "chain-ends"
	NobodyExercises   = "nobody-exercises"
	AnybodyExercises  = "anybody-exercises"
	BindingMissing    = "binding-missing"
	ExternalMissing   = "external-missing"
	ExternalUnused    = "external-unused"
	DeleteMissing     = "external-delete-missing"
	CreateOnly        = "create-only"
	NotComposed       = "not-composed"
	ApprovalRefused   = "approval-refused"
	DuplicatePolicy   = "duplicate-policy"
	CoveredPolicy     = "covered-policy"
	ConstantCondition = "constant-condition"
	ReadsElsewhere    = "reads-elsewhere"
)

// Rules are all of them, by severity.
func Rules() []Rule {
	return []Rule{
		{UnknownKind, Error, "An object is of a kind, or a version of it, that Kausality does not have."},
		{UnknownField, Error, "A field is none of the kind's: strict validation, which kubectl asks for, refuses it."},
		{Schema, Error, "A value is not what the schema of the kind asks for."},
		{SchemaRule, Error, "Values do not go together, by a rule of the schema of the kind."},
		{CELCompile, Error, "An expression does not compile."},
		{FieldPath, Error, "A field path is none."},
		{Selector, Error, "A label selector is none."},
		{InvalidValue, Error, "The webhook refuses a value."},

		{DuplicateKey, Warning, "A key is in a mapping twice: the last one counts, and what the others say is lost."},
		{DuplicateObject, Warning, "Two objects have one name: the one that is applied last replaces the other."},
		{UnreadableSchema, Warning, "Nothing is checked against the schema of a CRD or XRD, for it cannot be read."},
		{UnknownPath, Warning, "No object of the kind has a field at this path."},
		{CELType, Warning, "An expression does not fit the schema of the kind, or gives another type than is asked for."},
		{ExternalVerb, Warning, "No gate opens for this verb."},
		{Unreachable, Warning, "Nobody can make use of a policy: nobody may initiate by it, and nothing else allows what it is about."},
		{MetBelow, Warning, "A condition decides only where a chain starts, and the policy also serves below another one."},
		{ApprovalIdle, Warning, "Nothing waits for the approvals of a policy: nobody initiates by it, or it is about creation or deletion."},
		{BindingPolicy, Warning, "A binding grants nothing, for its policy is not there, cannot be used, or does not let it."},
		{BindingSubject, Warning, "A subject of a binding initiates nothing by it."},
		{WindowIdle, Warning, "A window does nothing."},
		{WindowOver, Warning, "A window has ended."},
		{ExceptionOver, Warning, "An exception of an Enforcement has ended."},

		{NotChecked, Note, "Nothing of what was read has the schema of a kind, so that paths and expressions are not checked against it."},
		{ChainEnds, Note, "A change of a composite resource is allowed, and no policy says what may follow from it."},
		{NobodyExercises, Note, "A policy lists who may carry its allowances on, and Crossplane, who would, is not among them."},
		{AnybodyExercises, Note, "Anybody may carry an allowance on: where Crossplane's service account is listed, only it may."},
		{BindingMissing, Note, "A policy requires a binding, and there is none."},
		{ExternalMissing, Note, "A change of a managed resource is allowed, and its provider may not act: it is held."},
		{ExternalUnused, Note, "Actions of a provider are allowed with no managed resource, or Delete with no deletion, and so never."},
		{DeleteMissing, Note, "The deletion of a managed resource is allowed, and not that of what it stands for: its gate stays closed for it."},
		{CreateOnly, Note, "A child may be created, and nothing allows a change of it later."},
		{NotComposed, Note, "A policy about a Claim allows a change of something else than its XR, which alone is made for it."},
		{ApprovalRefused, Note, "A policy asks for approvals of what follows from a change, and an Enforcement does not let that be stored."},
		{DuplicatePolicy, Note, "Two policies match and allow the same."},
		{CoveredPolicy, Note, "All that a policy allows another one allows as well, to the same subjects."},
		{ConstantCondition, Note, "A condition reads nothing of the change, and so is always true, or never."},
		{ReadsElsewhere, Note, "A provider applies what it reads in another object, and no gate sees a change of that."},
	}
}

// severityOf is that of a rule.
func severityOf(id string) Severity {
	for _, r := range Rules() {
		if r.ID == id {
			return r.Severity
		}
	}

	return Error
}
