// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/webhook"
)

// deletedBeside has hans delete the Claim while others write it: there is what they leave before each try to write down who
// deletes it. It returns what was written down, and how often it was tried.
func deletedBeside(t *testing.T, there func(n int) string, enforcements ...string) (*admissionv1.AdmissionResponse, string, int) {
	t.Helper()

	c, n := deletable(t), 0
	c.enforcements = enforcing(t, enforcements...).enforcements
	c.live = []*unstructured.Unstructured{manifest(t, liveClaim)}
	c.meanwhile = func() {
		n++
		c.live = nil

		if text := there(n); text != "" {
			c.live = append(c.live, manifest(t, text))
		}
	}

	rsp := post(t, serve(t, &webhook.Mutator{Judge: c.judge(t, time.Now())}), deleting(t, manifest(t, liveClaim), "hans", "platform-team"))

	return rsp, strings.Join(c.patches, "\n"), n
}

// TestADeletionIsWrittenDownThoughOthersAreFaster as the object is that they leave, and not for ever.
func TestADeletionIsWrittenDownThoughOthersAreFaster(t *testing.T) {
	const (
		tries = 5
		busy  = `cannot record who asked to delete Database "prod": somebody else writes it all the time: try again`
	)

	// version is the Claim at a version.
	version := func(n int) string { return strings.Replace(liveClaim, `"7"`, strconv.Quote(strconv.Itoa(7+n)), 1) }
	until := func(last int) func(n int) string { return func(n int) string { return version(min(n, last)) } }

	for name, tc := range map[string]struct {
		reason string
		// there is what is there at each try to write it down.
		there        func(n int) string
		enforcements []string
		tries        int
		// code of a refusal, and what it or a warning says.
		code          int32
		says, written string
	}{
		"Once":      {reason: "It is tried again.", there: until(1), tries: 2, written: `"resourceVersion":"8"`},
		"FourTimes": {reason: "And again.", there: until(tries - 1), tries: tries, written: `"resourceVersion":"11"`},
		"Always":    {reason: "At last it goes on, as where it cannot be written down at all.", there: version, tries: tries, says: busy},
		"AlwaysEnforced": {
			reason: "Or is refused, where an Enforcement insists.", there: version, tries: tries,
			enforcements: []string{of("validationActions: [Deny]")}, code: http.StatusInternalServerError, says: busy,
		},
		"Edited": {
			reason: "What is written is of what they have made of it.", tries: 2, written: "generation: 4",
			there: func(n int) string { return strings.Replace(until(1)(n), "generation: 3", "generation: 4", 1) },
		},
		"WrittenDown": {reason: "Another replica has written it down.", tries: 1, there: func(int) string { return grantedClaim() }},
		"Another": {
			reason: "It is of another object of that name by then.", tries: 1, code: http.StatusConflict,
			there: func(n int) string { return strings.Replace(version(n), "uid: u1", "uid: u2", 1) },
		},
		"Gone": {reason: "It is gone.", tries: 1, there: func(int) string { return "" }},
	} {
		t.Run(name, func(t *testing.T) {
			rsp, written, n := deletedBeside(t, tc.there, tc.enforcements...)
			if rsp.Allowed != (tc.code == 0) || !rsp.Allowed && rsp.Result.Code != tc.code {
				t.Errorf("%s\nallowed %t: %+v", tc.reason, rsp.Allowed, rsp.Result)
			}

			if said := strings.Join(append(rsp.Warnings, rsp.Result.Message), "\n"); !strings.Contains(said, tc.says) {
				t.Errorf("%s\nit says %q", tc.reason, said)
			}

			if n != tc.tries || tc.written == "" && written != "" || !strings.Contains(written, tc.written) {
				t.Errorf("%s\nwrote %q, tried %d times, want %d", tc.reason, written, n, tc.tries)
			}
		})
	}
}
