// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package play plays what pages show. It reads the sections of a Markdown page, their blocks, and the commands of
// console blocks; it types a command as a user of a stack, and compares what is printed with what the page shows.
package play
