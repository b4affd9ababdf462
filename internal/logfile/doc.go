// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logfile writes the log of decisions to a file, within bounds: of the file, of how
// many there are, of how fast it grows, and of what waits to be written. It never keeps a
// request waiting, and where the file cannot be written nothing fails.
package logfile
