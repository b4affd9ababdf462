// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// A Verb is what a call is to do.
type Verb string

// Verbs.
const (
	Observe Verb = "Observe"
	Create  Verb = "Create"
	Update  Verb = "Update"
	Delete  Verb = "Delete"
)

// A Request is what a provider asks of the system.
type Request struct {
	// Verb says what to do.
	Verb Verb `json:"verb"`
	// Name of the object.
	Name string `json:"name"`
	// Payload is all of the object as it is to be, for Create and Update.
	Payload map[string]any `json:"payload,omitempty"`
	// Managed is the managed resource that the provider acts for.
	Managed Managed `json:"managed"`
}

// Managed is what a managed resource was like when the provider acted for it.
type Managed struct {
	// UID of the resource.
	UID string `json:"uid"`
	// Generation of it.
	Generation int64 `json:"generation"`
	// Policies are its management policies.
	Policies []string `json:"policies,omitempty"`
	// Annotations are all it had.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Deleting is true once it is being deleted.
	Deleting bool `json:"deleting,omitempty"`
}

// An Answer is what the system says.
type Answer struct {
	// Exists reports whether the object is there.
	Exists bool `json:"exists"`
	// State is the object.
	State map[string]any `json:"state,omitempty"`
	// Error is why nothing was done, or so the system says.
	Error string `json:"error,omitempty"`
}

// A Call is a request, and what became of it.
type Call struct {
	Request

	// At is when it arrived.
	At time.Time
	// Took is how long it took; zero while it is under way.
	Took time.Duration
	// Applied reports whether it changed the object.
	Applied bool
	// Error is what the caller was told.
	Error string
}

func (c Call) String() string {
	return fmt.Sprintf("%s %s %v (%s) for generation %d under %v: applied=%t %s", c.At.Format("15:04:05.000"), c.Verb, c.Payload,
		c.Took.Round(time.Millisecond), c.Managed.Generation, c.Managed.Policies, c.Applied, c.Error)
}

// A Client calls a system.
type Client struct {
	// URL of the system.
	URL string
}

// Call has a request carried out. The error is the system's, or that of the way
// to it.
func (c Client) Call(ctx context.Context, r Request) (Answer, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return Answer{}, fmt.Errorf("cannot encode %s of %q: %w", r.Verb, r.Name, err)
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(raw))
	if err != nil {
		return Answer{}, fmt.Errorf("cannot %s %q: %w", r.Verb, r.Name, err)
	}

	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Answer{}, fmt.Errorf("cannot %s %q: %w", r.Verb, r.Name, err)
	}

	defer func() { _ = rsp.Body.Close() }()

	answer := Answer{}
	if err := json.NewDecoder(rsp.Body).Decode(&answer); err != nil {
		return answer, fmt.Errorf("cannot %s %q: %s: %w", r.Verb, r.Name, rsp.Status, err)
	}

	if answer.Error != "" {
		return answer, fmt.Errorf("cannot %s %q: %w", r.Verb, r.Name, errors.New(answer.Error))
	}

	return answer, nil
}
