// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package random_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// auditPolicy is the file that says what the API server logs.
func auditPolicy() string {
	dir, err := os.Getwd()
	if err != nil {
		return "" // The API server says so.
	}

	return filepath.Join(dir, "testdata", "audit-policy.yaml")
}

// auditEvent is what the API server's audit log says of a request about a ChangeApproval.
type auditEvent struct {
	Verb     string           `json:"verb"`
	Received metav1.MicroTime `json:"requestReceivedTimestamp"`
	User     struct {
		Username string `json:"username"`
	} `json:"user"`
	Impersonated *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	// ResponseObject is a ChangeApproval, or a status.
	ResponseObject json.RawMessage `json:"responseObject"`
}

// by is whose request it was.
func (e auditEvent) by() string {
	if e.Impersonated != nil {
		return e.Impersonated.Username
	}

	return e.User.Username
}

// auditLog is what the API server has logged. It writes an event before it answers, but one that is
// killed may have stored what it has not logged.
type auditLog struct {
	mu     sync.Mutex
	offset int64
	rest   []byte
	events map[string][]auditEvent // By namespace and name.
}

// of returns the events of a ChangeApproval, in order.
func (l *auditLog) of(namespace, name string) ([]auditEvent, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if err := l.read(); err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}

	out := slices.Clone(l.events[namespace+"/"+name])
	slices.SortStableFunc(out, func(a, b auditEvent) int { return cmp.Compare(a.Received.UnixNano(), b.Received.UnixNano()) })

	return out, nil
}

// read reads what was logged since the last time.
func (l *auditLog) read() error {
	file, err := os.Open(filepath.Join(running.LogDir(), processAPIServer+".log"))
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // It was read.

	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return err
	}

	more, err := io.ReadAll(file)
	if err != nil {
		return err
	}

	l.offset += int64(len(more))
	l.rest = append(l.rest, more...)

	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return nil
		}

		l.rest = rest

		var e auditEvent
		if !bytes.HasPrefix(line, []byte(`{"kind":"Event"`)) || json.Unmarshal(line, &e) != nil {
			continue
		}

		key := e.ObjectRef.Namespace + "/" + e.ObjectRef.Name
		l.events[key] = append(l.events[key], e)
	}
}

// own is what a player knows of a ChangeApproval that they made.
type own struct {
	cha *v1alpha1.ChangeApproval
	// at is when they began to make it, and ended when they deleted it; zero where they did not.
	at, ended time.Time
}

// verdicts are the ChangeApprovals of some names, as the audit log has them, and which changes they are
// about. What an API server that was killed has not logged is as those say who made it. It
// returns how many these are, too.
func (l *auditLog) verdicts(namespace string, names []string, mine []own, listed map[string]approvable) (out []verdict, unlogged int, err error) {
	for _, name := range names {
		events, err := l.of(namespace, name)
		if err != nil {
			return nil, 0, err
		}

		first := len(out)

		for _, e := range events {
			switch {
			case e.Verb == "create" && e.ResponseStatus.Code == http.StatusCreated:
				cha := &v1alpha1.ChangeApproval{}
				if err := json.Unmarshal(e.ResponseObject, cha); err != nil {
					return nil, 0, fmt.Errorf("cannot read ChangeApproval %q of the audit log: %w", name, err)
				}

				if a := cha.Spec.Approver; a == nil || a.Username != e.by() {
					return nil, 0, fmt.Errorf("ChangeApproval %q says that %+v made it, and %s did", name, a, e.by()) //nolint:err113 // It ends a play.
				}

				out = append(out, verdictOf(cha, e.Received.Time, listed))
			case e.Verb == "delete" && e.ResponseStatus.Code == http.StatusOK && len(out) > first:
				out[len(out)-1].ended = e.Received.Time
			}
		}

		for _, m := range mine {
			if m.cha.Name != name {
				continue
			}

			i := slices.IndexFunc(out, func(v verdict) bool { return v.uid == string(m.cha.UID) })
			if i < 0 {
				unlogged++
				out = append(out, verdictOf(m.cha, m.at, listed))
				i = len(out) - 1
			}

			if out[i].ended.IsZero() && !m.ended.IsZero() {
				unlogged++
				out[i].ended = m.ended
			}
		}
	}

	slices.SortStableFunc(out, func(a, b verdict) int { return a.at.Compare(b.at) })

	return out, unlogged, nil
}

// verdictOf is a ChangeApproval that was made at a time.
func verdictOf(cha *v1alpha1.ChangeApproval, at time.Time, listed map[string]approvable) verdict {
	v := verdict{
		name: cha.Name, uid: string(cha.UID), user: cha.Spec.Approver.Username, at: at, stored: cha.CreationTimestamp.Time, rejects: cha.Spec.Decision == v1alpha1.DecisionReject,
	}

	for _, digest := range cha.Spec.Changes {
		v.changes = append(v.changes, listed[digest])
	}

	return v
}
