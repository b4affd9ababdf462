// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradeallowance judges UpgradeAllowances, the upgrade windows:
// whether one can be used, whether it is in force, and which were used for a
// request. It also makes their statuses and events. Whether one allows a change
// is a matter of package decision.
//
// Its files:
//   - state.go: whether a window is in force, and why not ([Evaluate]); rollout of the pods or workload in activateWhen
//   - image.go: image comparison for these pods
//   - status.go: next status and conditions of a window ([Next]), with the news: started, paused, resumed, ended
//   - event.go: the Kubernetes event for such news, one for each piece of news ([Event])
//   - use.go: windows behind the allowed changes of a request ([UsedBy])
//   - validate.go: errors ([Validate]) and windows without effect ([Warnings]), for admission
//   - trim.go: fields of a pod or workload to keep in a cache ([Trim])
package upgradeallowance
