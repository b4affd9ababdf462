// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/message"
)

// Name is that under which Kausality records events.
const Name = "kausality"

// maxPrefix is how much of the name of an object is in that of its event.
const maxPrefix = 200

// A Notice is a Warning event that is recorded once, also by another process: its name follows from its reason and from what it
// is about. It is recorded again once the API server has forgotten it, after an hour as a rule.
//
// Source: kubernetes cmd/kube-apiserver, --event-ttl.
type Notice struct {
	// Regarding is the object that it is about, and Related another one.
	Regarding, Related corev1.ObjectReference
	// Reason, Action and Note of the event.
	Reason, Action, Note string
}

// Record records the event. False where it is recorded already.
func (n Notice) Record(ctx context.Context, c client.Client, now time.Time) (bool, error) {
	e := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: n.name(), Namespace: n.Regarding.Namespace},
		EventTime:  metav1.NewMicroTime(now), ReportingController: Name, ReportingInstance: Name,
		Type: corev1.EventTypeWarning, Reason: n.Reason, Action: n.Action, Note: message.Cut(n.Note, message.Most), Regarding: n.Regarding,
	}

	if e.Namespace == "" {
		e.Namespace = metav1.NamespaceDefault
	}

	if n.Related != (corev1.ObjectReference{}) {
		e.Related = &n.Related
	}

	switch err := c.Create(ctx, e); {
	case apierrors.IsAlreadyExists(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot record an event %s of %s %q: %w", n.Reason, n.Regarding.Kind, n.Regarding.Name, err)
	default:
		return true, nil
	}
}

// name of the event. Another object of the same name is another one.
func (n Notice) name() string {
	hash := sha256.Sum256([]byte(strings.Join([]string{
		n.Reason, n.Regarding.APIVersion, n.Regarding.Kind, n.Regarding.Name, string(n.Regarding.UID), string(n.Related.UID),
	}, "\x00")))

	return strings.TrimRight(fmt.Sprintf("%.*s", maxPrefix, n.Regarding.Name), "-.") + fmt.Sprintf(".%x", hash[:8])
}
