// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allowance reads, writes and applies the annotations in which objects
// carry what may follow from their state and why they are as they are.
//
// Values are written as YAML with a fixed key order, kausality.io/record as JSON,
// so that equal values are equal bytes, and read as YAML or JSON. It also
// says what an UpgradeAllowance is about.
//
// Its files:
//   - annotation.go: kausality.io/allowances, trace, approved and gate: reading ([Parse]), writing ([Format]), refusal of other versions
//   - allowance.go: whether an allowance covers a change ([Covers]); replacement of earlier ones ([Merge]); size limit
//   - source.go: origin of an allowance: change, deletion, window, approval; whether it has served ([Served]); related fields
//   - request.go: IDs of allowances: generation, and request within it ([ID]); their age, order and text
//   - window.go: UpgradeAllowances: in force ([InForce]), selected objects, covered changes ([Window]), actions allowed without a change
//   - action.go: actions of other systems, such as Terraform
//   - approval.go: objects with allowances of ChangeApprovals ([CarriesApproval])
//   - record.go: kausality.io/record: used allowances of the parent ([AddUses]), last request, windows
//   - held.go: kausality.io/held: held changes ([ParseHeld]), stored but not allowed changes ([ParseStored]); length of the list
//   - withheld.go: held changes, and the later allowances that serve them ([Withheld], [Since.Serves])
//   - trace.go: kausality.io/trace: newest entries ([AddTrace]), hops across namespaces
//   - codec.go: fast reading and writing of the usual YAML of allowances and traces; fast reading of gate records
//   - node.go: YAML of all other values: key order, quotes
//   - unknown.go: fields of later versions, kept when an annotation is written again
package allowance
