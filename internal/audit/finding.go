// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Rule names what is judged. It is part of reports and of what the command prints, and
// cannot be renamed.
type Rule string

// Rules; [Rules] has their order.
const (
	// NotAllowed is of a value that somebody stored who might not.
	NotAllowed Rule = "stored-not-allowed"
	// PassedNotAllowed is of a change that mode Audit of the function only reported.
	PassedNotAllowed Rule = "passed-not-allowed"
	// GateOverdue is of a gate that is open for longer than it may be.
	GateOverdue Rule = "gate-overdue"
	// GateOpen is of any other gate that is open.
	GateOpen Rule = "gate-open"
	// Ungated is of a managed resource whose gate was taken away.
	Ungated Rule = "not-gated"
	// Drifted is of a managed resource whose external object somebody has changed outside.
	Drifted Rule = "drifted"
	// RecordBroken is of an object of which a record of Kausality's cannot be read.
	RecordBroken Rule = "record-broken"
	// Held is of changes that are held, and wait for somebody.
	Held Rule = "held"
	// OwnerGone is of a managed resource that nobody owns any more.
	OwnerGone Rule = "owner-gone"
	// DeletionWaits is of a managed resource that is being deleted while its gate is
	// not open for that.
	DeletionWaits Rule = "deletion-waits"
	// LeftOutside is of an external object whose managed resource is gone.
	LeftOutside Rule = "left-outside"
	// FunctionMissing is of an XR whose Composition does not run the function.
	FunctionMissing Rule = "function-missing"
	// KindNotGoverned is of a kind that XRs compose and of which nobody asks Kausality.
	KindNotGoverned Rule = "kind-not-governed"
	// KindNotEnforced is of a kind that people edit and of which Kausality refuses and
	// holds nothing.
	KindNotEnforced Rule = "kind-not-enforced"
	// NotReady is of a policy, binding, window or Enforcement that is not in force.
	NotReady Rule = "not-ready"
	// Shadow is of a policy that allows nothing yet.
	Shadow Rule = "shadow"
	// WarnOnly is of an Enforcement that refuses and holds nothing.
	WarnOnly Rule = "warn-only"
	// ExceptionOpen is of an exception of an Enforcement that is in force.
	ExceptionOpen Rule = "exception-open"
	// WindowOpen is of a window that is in force.
	WindowOpen Rule = "window-open"
	// Unread is of what could not be looked at.
	Unread Rule = "unread"
)

// Severity says how much a finding matters, in OpenReports' words.
type Severity string

// Severities.
const (
	// High means that something may change, or has changed, that nobody may change.
	High Severity = "high"
	// Medium means that somebody has to do something.
	Medium Severity = "medium"
	// Low means that it is meant to be so for a time.
	Low Severity = "low"
	// Info means that it is worth knowing.
	Info Severity = "info"
)

// Result says what a finding comes to, in OpenReports' words.
type Result string

// Results.
const (
	// Fail means that something is not as it should be.
	Fail Result = "fail"
	// Warn means that something may be meant so, and is worth a look.
	Warn Result = "warn"
	// Error means that something could not be judged.
	Error Result = "error"
)

// Category is which of an auditor's questions a finding answers.
type Category string

// Categories, in the order in which they are reported.
const (
	// Changed is of what is not as somebody asked for it.
	Changed Category = "not-as-asked"
	// Pending is of what waits for somebody.
	Pending Category = "waits"
	// Changeable is of what can change without anybody having asked.
	Changeable Category = "can-change"
	// Unknown is of what could not be judged.
	Unknown Category = "not-known"
)

// Ref names an object, or a kind where it has no name.
type Ref struct {
	// APIVersion of it; empty where a resource is named.
	APIVersion string `json:"apiVersion"`
	// Kind of it, or the name of a resource that could not be looked at.
	Kind string `json:"kind"`
	// Namespace of the object; empty for none.
	Namespace string `json:"namespace,omitempty"`
	// Name of the object; empty for a kind.
	Name string `json:"name,omitempty"`
	// UID of the object; empty where it is not known.
	UID types.UID `json:"uid,omitempty"`
}

// String returns KIND [NAMESPACE/]NAME, or KIND.GROUP of a kind.
func (r Ref) String() string {
	group, _, found := strings.Cut(r.APIVersion, "/")

	switch {
	case r.Name == "" && found:
		return r.Kind + "." + group
	case r.Name == "":
		return r.Kind
	case r.Namespace != "":
		return r.Kind + " " + r.Namespace + "/" + r.Name
	default:
		return r.Kind + " " + r.Name
	}
}

// RefOf names an object.
func RefOf(u *unstructured.Unstructured) Ref {
	return Ref{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID()}
}

// Finding is one thing that is not as somebody asked for it, can change without anybody
// having asked, or waits for somebody.
type Finding struct {
	// Rule that found it.
	Rule Rule `json:"rule"`
	// Category of the rule: not-as-asked, waits, can-change or not-known.
	Category Category `json:"category"`
	// Severity of it: high, medium, low or info.
	Severity Severity `json:"severity"`
	// Result it comes to: fail, warn, or error where something could not be judged.
	Result Result `json:"result"`
	// Object it is about; without a name a kind.
	Object Ref `json:"object"`
	// Namespace that it matters to: the object's, or that of the Claim that a
	// cluster-scoped one was made for; empty for none.
	Namespace string `json:"namespace,omitempty"`
	// Part of the object that it is about, such as the name of an exception; empty for
	// all of it.
	Part string `json:"part,omitempty"`
	// Message says what was found, in one line.
	Message string `json:"message"`
	// Why it matters.
	Why string `json:"why"`
	// Remedy says what helps.
	Remedy string `json:"remedy"`
	// Since is when it began, if anything recorded that.
	Since *metav1.Time `json:"since,omitempty"`

	// owner is the XR that shows which namespace it matters to.
	owner types.UID
}

// nature is what all findings of a rule have, unless one says otherwise.
type nature struct {
	rule     Rule
	category Category
	severity Severity
	result   Result
	why      string
}

// natures are those of all rules, in their order.
func natures() []nature {
	return []nature{
		{NotAllowed, Changed, High, Fail, "its value is in force, and nobody asked for it who may"},
		{PassedNotAllowed, Changed, High, Fail, "the function runs in mode Audit, so that the change was made all the same"},
		{Held, Pending, Low, Warn, "somebody asked for it, or a Composition wants it, and it waits"},
		{Drifted, Pending, Medium, Warn, "no update of it is applied before that is reverted or approved"},
		{OwnerGone, Pending, Medium, Fail, whyLeft},
		{DeletionWaits, Pending, Medium, Fail, whyLeft},
		{LeftOutside, Pending, Medium, Fail, whyLeft},
		{NotReady, Pending, Medium, Fail, "what it says is not in force"},
		{Shadow, Pending, Info, Warn, "it allows nothing: what it is about goes by what other policies say"},
		{GateOverdue, Changeable, High, Fail, "whatever its spec says is applied meanwhile"},
		{GateOpen, Changeable, Low, Warn, "whatever its spec says is applied meanwhile"},
		{Ungated, Changeable, High, Warn, "its provider acts whenever it likes"},
		{FunctionMissing, Changeable, Low, Warn, "what the XR composes changes as soon as its Composition wants something else"},
		{KindNotGoverned, Changeable, Medium, Warn, "whoever may edit its objects changes what XRs are made of, and nobody is asked"},
		{KindNotEnforced, Changeable, Medium, Warn, "a change that nobody may initiate is stored, and its user is only warned"},
		{WarnOnly, Changeable, Low, Warn, "what is not allowed is stored, and only reported"},
		{ExceptionOpen, Changeable, Low, Warn, "its subjects change this without anybody having asked"},
		{WindowOpen, Changeable, Low, Warn, "its service account changes this without anybody having asked"},
		{RecordBroken, Unknown, Medium, Error, "what it says is not known"},
		{Unread, Unknown, Info, Error, "what is wrong there is not known"},
	}
}

// whyLeft is why what is left behind matters.
const whyLeft = "its external object is there, and nobody asks anything of it"

// Rules are all rules, in the order in which they are reported.
func Rules() []Rule {
	all := natures()
	out := make([]Rule, len(all))

	for i, n := range all {
		out[i] = n.rule
	}

	return out
}

// newFinding makes one of a rule.
func newFinding(r Rule, about Ref, message, remedy string) Finding {
	all := natures()
	n := all[slices.IndexFunc(all, func(n nature) bool { return n.rule == r })]

	return Finding{
		Rule: r, Category: n.category, Severity: n.severity, Result: n.result,
		Object: about, Namespace: about.Namespace, Message: message, Why: n.why, Remedy: remedy,
	}
}

// since adds when it began; nothing where that is not known.
func (f Finding) since(t time.Time) Finding {
	if !t.IsZero() {
		f.Since = &metav1.Time{Time: t.UTC()}
	}

	return f
}

// Compare orders findings by rule, and then by the object they are about.
func Compare(a, b Finding) int {
	order := Rules()

	return cmp.Or(
		cmp.Compare(slices.Index(order, a.Rule), slices.Index(order, b.Rule)),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Object.APIVersion, b.Object.APIVersion),
		strings.Compare(a.Object.Kind, b.Object.Kind), strings.Compare(a.Object.Namespace, b.Object.Namespace),
		strings.Compare(a.Object.Name, b.Object.Name), strings.Compare(a.Message, b.Message),
	)
}

// Key tells findings apart: the same of one object is the same finding, whatever its
// message says by now.
func (f Finding) Key() string {
	id := string(f.Object.UID)
	if id == "" {
		id = f.Object.APIVersion + " " + f.Object.String()
	}

	return string(f.Rule) + " " + id + " " + f.Part
}

// joined are texts as one, the first maxNamed of them.
func joined(texts []string) string {
	if len(texts) <= maxNamed {
		return strings.Join(texts, "; ")
	}

	return strings.Join(texts[:maxNamed], "; ") + "; and " + more(len(texts)-maxNamed)
}

// more names how many are left out.
func more(n int) string { return strconv.Itoa(n) + " more" }

// maxNamed is the most fields of one object that a finding names.
const maxNamed = 5
