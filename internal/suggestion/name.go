// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// name gives each policy a name: COMPOSITION-KIND-FIELDS. The same Composition always gives
// the same names, and no other gives them: so to apply suggestions again changes those that
// were applied before. What is too long, or of the same name, gets a hash of what it is about.
func (w *writer) name() {
	count := map[string]int{}

	for i := range w.drafts {
		d := &w.drafts[i]
		d.Policy.Name = w.plain(d)
		count[d.Policy.Name]++
	}

	for i := range w.drafts {
		d := &w.drafts[i]
		if len(d.Policy.Name) <= validation.DNS1123SubdomainMaxLength && count[d.Policy.Name] == 1 {
			continue
		}

		sum := sha256.Sum256([]byte(strings.Join(append([]string{d.composition, d.Policy.Spec.Match.APIGroup, d.Policy.Spec.Match.Kind},
			d.Policy.Spec.Match.Fields...), "\n")))
		hash := "-" + hex.EncodeToString(sum[:])[:10]
		room := min(len(d.Policy.Name), validation.DNS1123SubdomainMaxLength-len(hash))
		d.Policy.Name = strings.TrimRight(d.Policy.Name[:room], "-.") + hash
	}
}

// notInNames are what names do not have.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// plain is the name of a policy where it is short enough.
func (w *writer) plain(d *draft) string {
	fields := d.Policy.Spec.Match.Fields
	parts := append(make([]string, 0, 1+len(fields)), strings.ToLower(d.Policy.Spec.Match.Kind))

	for _, f := range fields {
		f = strings.TrimPrefix(strings.TrimPrefix(f, "spec."), "metadata.")
		parts = append(parts, strings.Trim(notInNames.ReplaceAllString(strings.ToLower(f), "-"), "-"))
	}

	return w.Prefix + d.composition + "-" + strings.Trim(strings.Join(parts, "-"), "-")
}

// NameErrors say why no policy can have a name; none where it can.
func NameErrors(name string) []string { return validation.IsDNS1123Subdomain(name) }
