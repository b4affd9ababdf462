// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// errEnded is the cause when a certificate is over.
var errEnded = errors.New("ended")

// Valid is a health check: an error while the certificate that is served has
// ended, so that no client takes it.
func Valid(certificate Expiring, now func() time.Time) func(*http.Request) error {
	return func(*http.Request) error {
		if ends := certificate.NotAfter(); !now().Before(ends) {
			return fmt.Errorf("cannot serve: the certificate %w at %s", errEnded, ends.UTC().Format(time.RFC3339))
		}

		return nil
	}
}

// Expiring is something that ends.
type Expiring interface {
	// NotAfter is when.
	NotAfter() time.Time
}
