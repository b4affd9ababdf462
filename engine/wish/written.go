// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/internal/plain"
)

// written is the record's form in an annotation.
type written struct {
	Version    int    `json:"version"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Leaves     string `json:"leaves"`
	// Baseline are fields that count as wished all along, until that is reported: those that
	// there is room for.
	Baseline []string `json:"baseline,omitempty"`
	// Withheld are the places of what is wished and held.
	Withheld []v1alpha1.WithheldPlaces `json:"withheld,omitempty"`
	// Repairs says, by place, what Crossplane has put back of late.
	Repairs map[string]v1alpha1.Repairs `json:"repairs,omitempty"`
}

// read reads the form of a record.
func (w *written) read(text string) error {
	if w.readPlain(text) {
		return nil
	}

	*w = written{}

	return yaml.Unmarshal([]byte(text), w)
}

// readPlain reads a record without the YAML library; false where it is not of the plain
// shape.
func (w *written) readPlain(text string) bool {
	r := plain.Reader{Rest: text}

	w.APIVersion = r.Text("apiVersion: ")

	if r.Skip("baseline:\n") {
		for r.Peek("- ") {
			w.Baseline = append(w.Baseline, r.Text("- "))
		}

		r.Failed = r.Failed || len(w.Baseline) == 0
	}

	w.Kind = r.Text("kind: ")
	w.Leaves = r.Long("leaves: ")
	w.Version = int(r.Number("version: "))

	return !r.Failed && r.Rest == ""
}

// format writes the form of a record.
func (w *written) format() (string, error) {
	if text, ok := w.formatPlain(); ok {
		return text, nil
	}

	out, err := yaml.Marshal(w)

	return string(out), err
}

// formatPlain writes a record without the YAML library; false where it is not of the
// plain shape.
func (w *written) formatPlain() (string, bool) {
	if len(w.Withheld)+len(w.Repairs) > 0 || !plain.Is(w.APIVersion) || !plain.Is(w.Kind) || !plain.IsValue(w.Leaves) || w.Version != version {
		return "", false
	}

	var b strings.Builder

	b.Grow(len("apiVersion: \nkind: \nleaves: \nversion: 1\n") + len(w.APIVersion) + len(w.Kind) + len(w.Leaves))
	b.WriteString("apiVersion: " + w.APIVersion + "\n")

	if len(w.Baseline) > 0 {
		b.WriteString("baseline:\n")
	}

	for _, field := range w.Baseline {
		if !plain.Is(field) {
			return "", false
		}

		b.WriteString("- " + field + "\n")
	}

	b.WriteString("kind: " + w.Kind + "\nleaves: ")
	b.WriteString(w.Leaves)
	b.WriteString("\nversion: 1\n")

	return b.String(), true
}
