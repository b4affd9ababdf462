// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeallowance

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
)

const (
	// action is what events about windows say we did.
	action = "KeepWindow"
	// maxNote limits the bytes of an event's note.
	//
	// Source: k8s.io/kubernetes pkg/apis/core/validation/events.go.
	maxNote = 1000
	// maxName is how long a name may be beside what comes after it in one of 253
	// characters.
	maxName = 200
)

// Event is the event that shows news of a window. The same news has an event of
// the same name, so that it is reported once, whoever comes to report it again.
func Event(u *v1alpha1.UpgradeAllowance, n News, now time.Time) *eventsv1.Event {
	sum := sha256.Sum256([]byte(string(u.GetUID()) + "/" + n.Key))

	name := u.GetName()
	name = name[:min(len(name), maxName)] + "." + hex.EncodeToString(sum[:8])

	typ := corev1.EventTypeNormal
	if n.Warning {
		typ = corev1.EventTypeWarning
	}

	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		EventTime:  metav1.NewMicroTime(now),
		Regarding: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion().String(), Kind: "UpgradeAllowance", Name: u.GetName(), UID: u.GetUID(),
			ResourceVersion: u.GetResourceVersion(),
		},
		Type: typ, Reason: string(n.Reason), Action: action, Note: change.Text(n.Note, maxNote),
		ReportingController: "kausality", ReportingInstance: "kausality-manager",
	}
}
