// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Changed is changed.yaml: what may be decided otherwise than at the baseline.
type Changed struct {
	// Renamed rules and kinds of reasons: the name now, by that at the baseline.
	Renamed Renamed `json:"renamed"`
	// Changes of decisions, a class each.
	Changes []Change `json:"changes"`
}

// Renamed are the names that are others now.
type Renamed struct {
	// Rules of findings.
	Rules map[string]string `json:"rules"`
	// Reasons are the kinds of reasons why a change is not allowed.
	Reasons map[string]string `json:"reasons"`
}

// Change is a class of differences. A difference is in the first class that fits it.
type Change struct {
	// Why it is decided otherwise.
	Why string `json:"why"`
	// By is the paragraph that orders it, such as "REDESIGN.md section 2, A gate holds at the door".
	By string `json:"by"`
	// Part of the decision, see [Difference].
	Part string `json:"part"`
	// In, Field, From and To are regular expressions (RE2) that match the whole of what [Difference] has
	// under that name; what is left out matches everything. One of them at least is given, and none matches
	// the empty text.
	In    string `json:"in,omitempty"`
	Field string `json:"field,omitempty"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
	// Count is how many differences it is of.
	Count int `json:"count"`

	patterns []pattern
}

// pattern is a regular expression on a part of a difference.
type pattern struct {
	re *regexp.Regexp
	of func(d *Difference) string
}

var (
	errUnexplained = errors.New("why, by, part and count, and at least one of in, field, from and to, have to be given")
	errAnything    = errors.New("it matches anything")
	errNoName      = errors.New("a name is empty")
)

// ParseChanged reads changed.yaml.
func ParseChanged(raw []byte) (*Changed, error) {
	out := &Changed{}
	if err := yaml.UnmarshalStrict(raw, out); err != nil {
		return nil, fmt.Errorf("cannot read changed.yaml: %w", err)
	}

	for from, to := range out.names() {
		if strings.HasSuffix(from, ": ") || to == "" {
			return nil, fmt.Errorf("cannot read changed.yaml: renamed: %w", errNoName)
		}
	}

	for i := range out.Changes {
		if err := out.Changes[i].compile(); err != nil {
			return nil, fmt.Errorf("cannot read changed.yaml: changes[%d]: %w", i, err)
		}
	}

	return out, nil
}

// names yields what is renamed: the table and the name at the baseline, and the one now.
func (c *Changed) names() func(yield func(from, to string) bool) {
	return func(yield func(from, to string) bool) {
		for table, m := range map[string]map[string]string{"rules": c.Renamed.Rules, "reasons": c.Renamed.Reasons} {
			for from, to := range m {
				if !yield(table+": "+from, to) {
					return
				}
			}
		}
	}
}

func (c *Change) compile() error {
	for _, p := range []struct {
		text string
		of   func(d *Difference) string
	}{
		{c.In, func(d *Difference) string { return d.In }},
		{c.Field, func(d *Difference) string { return d.Field }},
		{c.From, func(d *Difference) string { return d.From }},
		{c.To, func(d *Difference) string { return d.To }},
	} {
		if p.text == "" {
			continue
		}

		re, err := regexp.Compile(`^(?s:` + p.text + `)$`)
		if err != nil {
			return err //nolint:wrapcheck // It has the expression.
		}

		if re.MatchString("") {
			return fmt.Errorf("%s: %w", p.text, errAnything)
		}

		c.patterns = append(c.patterns, pattern{re, p.of})
	}

	if c.Why == "" || c.By == "" || c.Part == "" || c.Count <= 0 || len(c.patterns) == 0 {
		return errUnexplained
	}

	return nil
}

func (c *Change) fits(d *Difference) bool {
	return c.Part == d.Part && !slices.ContainsFunc(c.patterns, func(p pattern) bool { return !p.re.MatchString(p.of(d)) })
}

// Sorting sorts differences into the classes of changed.yaml.
type Sorting struct {
	changed *Changed
	// Others are those that fit none.
	Others []Difference
	used   []int
	// names are those at the baseline that are renamed, and taken those which it has beside what gets that name.
	names, taken map[string]bool
}

// Sort begins to sort differences.
func (c *Changed) Sort() *Sorting {
	return &Sorting{changed: c, used: make([]int, len(c.Changes)), names: map[string]bool{}, taken: map[string]bool{}}
}

// Compare sorts the differences between a decision at the baseline and now.
func (s *Sorting) Compare(in string, from, to Judged) {
	for _, d := range Compare(in, s.renamed(from), to) {
		s.Add(d)
	}
}

// Add sorts a difference.
func (s *Sorting) Add(d Difference) {
	i := slices.IndexFunc(s.changed.Changes, func(c Change) bool { return c.fits(&d) })
	if i < 0 {
		s.Others = append(s.Others, d)

		return
	}

	s.used[i]++
}

// renamed is a decision at the baseline in the names of now.
func (s *Sorting) renamed(j Judged) Judged {
	if len(s.changed.Renamed.Rules)+len(s.changed.Renamed.Reasons) == 0 {
		return j
	}

	raw, err := json.Marshal(j.Decided)
	if err != nil {
		return j // It came of JSON.
	}

	out := j
	if out.Decided = nil; json.Unmarshal(raw, &out.Decided) != nil {
		return j
	}

	for _, key := range []string{"findings", "shadowed"} {
		for _, f := range mappings(out.Decided[key]) {
			s.rename(f, partRule, "rules", s.changed.Renamed.Rules)

			for _, l := range mappings(f["lacks"]) {
				s.rename(l, "what", "reasons", s.changed.Renamed.Reasons)
			}
		}
	}

	return out
}

// rename renames the value of a key, by the names of a table.
func (s *Sorting) rename(m map[string]any, key, table string, names map[string]string) {
	from, _ := m[key].(string)

	for _, to := range names {
		s.taken[table+": "+to] = s.taken[table+": "+to] || from == to
	}

	if to, ok := names[from]; ok {
		m[key], s.names[table+": "+from] = to, true
	}
}

// Unused are the entries of changed.yaml that do not say what differs, for a person.
func (s *Sorting) Unused() []string {
	var out []string

	for name, to := range s.changed.names() {
		table, _, _ := strings.Cut(name, ": ")

		switch {
		case !s.names[name]:
			out = append(out, fmt.Sprintf("renamed: %s: no decision at the baseline has it", name))
		case s.taken[table+": "+to]:
			out = append(out, fmt.Sprintf("renamed: %s: the baseline has %s as well", name, to))
		}
	}

	slices.Sort(out)

	for i, n := range s.used {
		if want := s.changed.Changes[i].Count; n != want {
			out = append(out, fmt.Sprintf("changes[%d] (%s): %d differences fit it, and its count is %d", i, s.changed.Changes[i].Why, n, want))
		}
	}

	return out
}

// maxExamples is how many differences of a class are shown.
const maxExamples = 3

// Report sums up the differences that fit no class: alike ones together, the most first. Empty where there
// are none.
func (s *Sorting) Report() string {
	alike := map[Difference][]Difference{}

	for _, d := range s.Others {
		key := Difference{Part: d.Part, From: short(d.From), To: short(d.To)}
		alike[key] = append(alike[key], d)
	}

	keys := make([]Difference, 0, len(alike))
	for key := range alike {
		keys = append(keys, key)
	}

	slices.SortFunc(keys, func(a, b Difference) int {
		return cmp.Or(len(alike[b])-len(alike[a]), cmp.Compare(a.Part, b.Part), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})

	var out strings.Builder

	for _, key := range keys {
		fmt.Fprintf(&out, "%d x %s: %s -> %s\n", len(alike[key]), key.Part, key.From, key.To)

		for i, d := range alike[key] {
			if i == maxExamples {
				break
			}

			fmt.Fprintf(&out, "      %s %s\n", d.In, d.Field)
		}
	}

	return out.String()
}

// short cuts a value.
func short(text string) string {
	const most = 120

	text = strings.ReplaceAll(strings.TrimSpace(text), "\n", " | ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}

	return text
}
