// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replay decides the decisions of a log again, by the policies that they were made by
// or by others, and says what is decided otherwise.
//
// [Run] reads logs line by line ([lines]), has several goroutines decide ([decider]), and adds
// up what comes of it in the order of the lines ([tally]): the same logs and policies give the
// same summary. It uses nothing but what is in the logs, and opens no file.
package replay
