// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

// stored is what is withheld after it was written and read.
func stored(t *testing.T, w allowance.Withheld) allowance.Withheld {
	t.Helper()

	raw, err := json.Marshal(w.Record())
	if err != nil {
		t.Fatal(err)
	}

	var record []v1alpha1.WithheldPlaces
	if err := json.Unmarshal(raw, &record); err != nil {
		t.Fatal(err)
	}

	out, err := allowance.ReadWithheld(record)
	if err != nil {
		t.Fatal(err)
	}

	return out
}

func held(places ...allowance.Place) []allowance.Hold {
	out := make([]allowance.Hold, 0, len(places))
	for _, p := range places {
		out = append(out, allowance.Hold{Place: p})
	}

	return out
}

// TestARepairIsServedByAnyAllowance until something new is asked for in its place.
func TestARepairIsServedByAnyAllowance(t *testing.T) {
	place := allowance.Place{"spec", "engine"}
	later := v1alpha1.Allowance{ID: "13.0", Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourcePolicy, Field: "spec.size"}}

	w := stored(t, allowance.Withheld(nil).Next([]allowance.Hold{{Place: place, Repair: true}}, allowance.NewSince("12.0", nil), false))
	if since, ok := w.At(place); !ok || since.At != "12.0" || !since.Serves(later, nil) {
		t.Errorf("%v", since)
	}

	w = w.Next(held(place), allowance.NewSince("12.1", nil), false)
	if since, _ := w.At(place); since.At != "12.1" || since.Serves(later, nil) {
		t.Errorf("%v", since)
	}
}

func TestWhatIsWithheldIsSoAboveAndBelow(t *testing.T) {
	first := allowance.NewSince("12.0", []string{"spec.size"})
	image := allowance.Place{"spec", "containers", `{"name":"c"}`, "image"}
	w := stored(t, allowance.Withheld(nil).Next(held(image), first, false))

	for _, p := range []allowance.Place{image, image[:3], image[:2], image[:1], append(image[:4:4], "tag")} {
		if since, ok := w.At(p); !ok || since != first {
			t.Errorf("%v: %v, %t", p, since, ok)
		}
	}

	for _, p := range []allowance.Place{{"spec", "containers", `{"name":"d"}`, "image"}, {"spec", "containers", `{"name":"c"}`, "args"}, {"metadata"}, {"delete"}} {
		if since, ok := w.At(p); ok {
			t.Errorf("%v: %v", p, since)
		}
	}

	// What is held still is so since then; what is held anew since now.
	second := allowance.NewSince("13.0", nil)
	other := allowance.Place{"spec", "replicas"}
	w = stored(t, w.Next(held(image, other), second, false))

	if since, _ := w.At(image); since != first {
		t.Errorf("since %v", since)
	}

	if since, _ := w.At(other); since != second {
		t.Errorf("since %v", since)
	}

	// What is not held any more is forgotten.
	if w = w.Next(held(other), second, false); len(w) == 0 {
		t.Error("all is forgotten")
	} else if _, ok := w.At(image); ok {
		t.Error("it is withheld still")
	}
}

// TestNoPlaceIsDropped however many there are, and of however many changes of the parent.
func TestNoPlaceIsDropped(t *testing.T) {
	const many = 3 * v1alpha1.MaxWithheld

	places := make([]allowance.Place, 0, many)
	for i := range many {
		places = append(places, allowance.Place{"data", fmt.Sprintf("key-%d", i), "x"})
	}

	w := stored(t, allowance.Withheld(nil).Next(held(places...), allowance.NewSince("12.0", nil), false))
	if len(w) > v1alpha1.MaxWithheld {
		t.Errorf("%d are recorded", len(w))
	}

	for i, p := range places {
		if since, ok := w.At(p); !ok || since.At != "12.0" {
			t.Fatalf("%v: %v, %t", p, since, ok)
		}

		if i < 100 {
			w = stored(t, w.Next(held(places...), allowance.NewSince(fmt.Sprintf("%d.0", 13+i), nil), false))
		}
	}

	// One each time, so that each is since another one.
	w = nil
	for i := range 100 {
		w = stored(t, w.Next(held(places[:i+1]...), allowance.NewSince(fmt.Sprintf("%d.0", 13+i), nil), false))
	}

	for i, p := range places[:100] {
		if since, ok := w.At(p); !ok || since.After(fmt.Sprintf("%d.0", 13+i)) {
			t.Fatalf("%v: %v, %t", p, since, ok)
		}
	}
}

func TestWhatIsUnknownMakesASinceStrict(t *testing.T) {
	place := []allowance.Place{{"spec", "engine"}}
	since := allowance.NewSince("12.0", []string{"spec.size"})
	anew := v1alpha1.Allowance{ID: "13.0", Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourcePolicy, Field: "spec.size"}}

	w := allowance.Withheld(nil).Next(held(place...), since, false)
	if got, _ := w.At(place[0]); !got.Serves(anew, nil) || got.Serves(anew, []string{"spec.size.x"}) {
		t.Errorf("%v", got)
	}

	w = w.Next(held(place...), since, true)
	if got, _ := w.At(place[0]); got.Serves(anew, nil) {
		t.Errorf("%v", got)
	}

	for _, text := range []string{`[{"at":"x","places":"AAAAAAAAAAA"}]`, `[{"at":"1.0","places":"AAAA"}]`, `[{"at":"1.0","places":"*"}]`} {
		var record []v1alpha1.WithheldPlaces
		if err := json.Unmarshal([]byte(text), &record); err != nil {
			t.Fatal(err)
		}

		if _, err := allowance.ReadWithheld(record); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}
