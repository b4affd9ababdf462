// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/window"
)

// actionWindow is what events about windows say we did.
const actionWindow = "KeepWindow"

// mostNote is the most bytes of an event's note.
//
// Source: k8s.io/kubernetes pkg/apis/core/validation/events.go.
const mostNote = 1000

// tell records an event on a window. The same news has the same name, so that it
// is told once, whoever comes to tell it again.
func (w *windows) tell(ctx context.Context, u *v1alpha1.UpgradeAllowance, n window.News, now time.Time) error {
	sum := sha256.Sum256([]byte(string(u.GetUID()) + "/" + n.Key))

	name := u.GetName()
	name = name[:min(len(name), mostName)] + "." + hex.EncodeToString(sum[:8])

	typ := corev1.EventTypeNormal
	if n.Warning {
		typ = corev1.EventTypeWarning
	}

	err := w.client.Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		EventTime:  metav1.NewMicroTime(now),
		Regarding: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion().String(), Kind: "UpgradeAllowance", Name: u.GetName(), UID: u.GetUID(),
			ResourceVersion: u.GetResourceVersion(),
		},
		Type: typ, Reason: n.Reason, Action: actionWindow, Note: change.Text(n.Note, mostNote),
		ReportingController: "kausality", ReportingInstance: "kausality-manager",
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot record an event on UpgradeAllowance %q: %w", u.GetName(), err)
	}

	return nil
}
