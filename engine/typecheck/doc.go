// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package typecheck finds what is wrong with one AllowancePolicy, AllowanceBinding, UpgradeAllowance or
// Enforcement by itself, and by the schemas of the kinds that it names: paths and expressions that do not
// fit, unknown verbs, parts that nobody can reach. Each finding has a rule; [Rules] lists all of them, also
// those of package check. The manager writes findings into the object's status.
//
// Its files:
//   - object.go: all checks of a policy, binding, window or Enforcement ([Policy], [Binding]); limits
//   - rule.go: IDs, severities and texts of all findings ([Rules])
//   - kind.go: served kinds named by an object, whose schemas it is checked against ([Kinds])
//   - against.go: check of paths and expressions against the schema of one kind ([Against])
//   - part.go: the paths and expressions of an object ([MatchParts])
//   - path.go: field paths unknown to the schema ([checkPath])
//   - expression.go: type errors of CEL expressions ([typer])
//   - jsontypes.go: CEL types made from a schema
//   - schema.go: schemas of metadata, request and namespaceObject; what a schema leaves open
//   - reach.go: policies without any user ([Reach]); conditions ignored below the start of a chain; policies about composed resources
//   - grants.go: permissions of other policies and windows about a kind; kinds of its parents ([Grants])
//   - subject.go: binding subjects without effect ([NeverByBinding]); also approvals without effect
//   - verb.go: External verbs without effect on gates ([CheckVerbs])
//   - finding.go: findings ([Finding], [Report]) and their form in a status; also the kind of a permission
//   - alike.go: suggestions for misspelt names ([Alike])
package typecheck
