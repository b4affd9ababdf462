// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeallowance

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// News is what there is to report of a window.
type News struct {
	// Key distinguishes it from all other news of the window: the same news has the
	// same key whenever it is found out from the same status.
	Key string
	// Reason of the event, and its Note.
	Reason v1alpha1.EventReason
	Note   string
	// Warning is true where somebody should check.
	Warning bool
}

// Step is the next status of a window, with what is new in it.
type Step struct {
	Status v1alpha1.UpgradeAllowanceStatus
	News   []News
}

// Next returns the status of a window that is in a state, and what there is to
// show that, by what its status is now. Ready is nil where nothing is known
// of it.
func Next(u *v1alpha1.UpgradeAllowance, state State, ready *metav1.Condition, now time.Time) Step {
	s := &Step{Status: *u.Status.DeepCopy()}
	was := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionActive)

	s.findNews(u, was, state)

	// Whatever is written has every XR composed anew that requires the window: what
	// it waits for is said once for each reason, not for each pod.
	if was != nil && was.Status == status(state.Active) && was.Reason == state.Reason && was.ObservedGeneration == u.GetGeneration() {
		state.Message = was.Message
	}

	s.Status.ObservedGeneration, s.Status.Active, s.Status.Reason = u.GetGeneration(), state.Active, state.Reason
	s.set(u, v1alpha1.ConditionActive, status(state.Active), state.Reason, state.Message, now)

	if state.Active {
		s.once(u, v1alpha1.ConditionStarted, "the window has been in force", now)
	}

	if ready != nil {
		c := *ready
		c.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&s.Status.Conditions, c)
	}

	return *s
}

func status(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}

	return metav1.ConditionFalse
}

// set sets a condition. Its time is that of the last change of its status: a later second than that of
// the one before, for by this time changes are distinguished.
func (s *Step) set(u *v1alpha1.UpgradeAllowance, typ string, is metav1.ConditionStatus, reason, message string, now time.Time) {
	if was := meta.FindStatusCondition(s.Status.Conditions, typ); was != nil && now.Unix() <= was.LastTransitionTime.Unix() {
		now = was.LastTransitionTime.Add(time.Second)
	}

	meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: typ, Status: is, Reason: reason, Message: message,
		ObservedGeneration: u.GetGeneration(), LastTransitionTime: metav1.NewTime(now),
	})
}

// once sets a condition that stays.
func (s *Step) once(u *v1alpha1.UpgradeAllowance, typ, message string, now time.Time) {
	if !meta.IsStatusConditionTrue(s.Status.Conditions, typ) {
		s.set(u, typ, metav1.ConditionTrue, typ, message, now)
	}
}

// findNews finds out what is new.
func (s *Step) findNews(u *v1alpha1.UpgradeAllowance, was *metav1.Condition, state State) {
	started := meta.IsStatusConditionTrue(u.Status.Conditions, v1alpha1.ConditionStarted)
	active := was != nil && was.Status == metav1.ConditionTrue
	ended := was != nil && was.Reason == v1alpha1.ReasonEnded

	// A change is reported once: the key has what the status was before, and since
	// when.
	since := ""
	if was != nil {
		since = "/" + strconv.FormatInt(was.LastTransitionTime.Unix(), 10) + "/" + was.Reason + "/" + was.Message
	}

	switch {
	case state.Active && !started:
		s.news(v1alpha1.EventReasonWindowStarted, "", false, state.Message+", until "+rfc3339(u.Spec.ValidUntil.Time))
	case state.Active && !active:
		s.news(v1alpha1.EventReasonWindowResumed, since, false, state.Message)
	case state.Reason == v1alpha1.ReasonEnded && !ended:
		note := state.Message
		if !started {
			note += "; it was never in force"
		}

		s.news(v1alpha1.EventReasonWindowEnded, "/"+rfc3339(u.Spec.ValidUntil.Time), !started, note)
	case !state.Active && active:
		// That somebody suspended it is what they wanted.
		s.news(v1alpha1.EventReasonWindowPaused, since, state.Reason != v1alpha1.ReasonSuspended, state.Reason+": "+state.Message)
	}
}

func (s *Step) news(reason v1alpha1.EventReason, moment string, warning bool, note string) {
	s.News = append(s.News, News{Key: string(reason) + moment, Reason: reason, Note: note, Warning: warning})
}
