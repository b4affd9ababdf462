// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"

	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

// Summary is what comes of a replay.
type Summary struct {
	// Decisions that were decided again.
	Decisions int `json:"decisions"`
	// AsRecorded are those that are decided as they were.
	AsRecorded int `json:"asRecorded"`
	// ByOthers are those of these that are decided so for another reason, or in other words: by
	// other policies, or where credentials are masked that the words were about.
	ByOthers int `json:"byOthers"`
	// Changed are those that are decided otherwise.
	Changed int `json:"changed"`
	// Allowed are those of these that would be allowed, and were not.
	Allowed int `json:"allowed"`
	// Unallowed are those that would not be allowed, and were.
	Unallowed int `json:"unallowed"`
	// Unknown are decisions of which it cannot be known, for the log does not have what
	// these policies ask for.
	Unknown int `json:"unknown"`
	// Retried are those of which who asked was told to ask again: they are decided again
	// only by the policies of then.
	Retried int `json:"retried"`
	// Dropped are decisions that the log says were left out of it.
	Dropped int64 `json:"dropped"`
	// Skipped are lines of kinds or versions that are not known.
	Skipped int `json:"skipped"`
	// Truncated are logs whose last line has no end.
	Truncated int `json:"truncated"`
	// Unreadable are lines, or the rest of a log, that cannot be read.
	Unreadable int `json:"unreadable"`
	// Changes that are alike are one, in the order of their number.
	Changes []Change `json:"changes"`
	// NotKnown is what would have to be known, in the order of its number.
	NotKnown []Count `json:"notKnown"`
	// Problems are the first lines that cannot be read.
	Problems []Problem `json:"problems"`
}

// Change is what is decided otherwise, alike in some decisions.
type Change struct {
	// Group and Kind of the objects.
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	// Field that changes, with [*] for indices of lists; empty for the whole request.
	Field string `json:"field,omitempty"`
	// Before is what was decided: Allowed, Ungoverned, Exempt where it needed nobody's leave,
	// or of what is unallowed Denied, Held, Warned or Audited.
	Before string `json:"before"`
	// After is what would be decided.
	After string `json:"after"`
	// Because says of the first of them what would allow it, or what it would lack.
	Because string `json:"because,omitempty"`
	// Masked is true where credentials are masked in what was decided: it may differ for that.
	Masked bool `json:"masked,omitempty"`
	// Decisions is how many there are.
	Decisions int `json:"decisions"`
	// Objects is how many objects they are about, and MoreObjects true where there are
	// more than that.
	Objects     int  `json:"objects"`
	MoreObjects bool `json:"moreObjects,omitempty"`
	// Users who asked, by how many decisions: those with the most.
	Users []Count `json:"users"`
	// MoreUsers is true where there are others.
	MoreUsers bool `json:"moreUsers,omitempty"`
	// Examples are the first, each about another object.
	Examples []Example `json:"examples"`
}

// Example is one decision.
type Example struct {
	// Log and Line that it is in.
	Log  string `json:"log"`
	Line int    `json:"line"`
	// Time of it.
	Time time.Time `json:"time"`
	// Namespace and Name of the object.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Field with its indices.
	Field string `json:"field,omitempty"`
	// Operation that was asked for.
	Operation request.Operation `json:"operation"`
	// User who asked.
	User string `json:"user"`
}

// Count is how many decisions there are of something.
type Count struct {
	// Name of it.
	Name string `json:"name"`
	// Decisions is how many.
	Decisions int `json:"decisions"`
}

// Problem is a line that cannot be read.
type Problem struct {
	// Log and Line; without a line it is the log.
	Log  string `json:"log"`
	Line int    `json:"line,omitempty"`
	// Message says why.
	Message string `json:"message"`
}
