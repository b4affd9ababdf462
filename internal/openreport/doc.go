// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openreport writes what an audit finds as Reports of OpenReports, the API that
// policy engines and scanners report by. It is pure: who writes them into a cluster is
// kubectl kausality audit --report, and the manager.
package openreport
