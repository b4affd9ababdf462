// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logfile writes the log of decisions to a file, within bounds: of the file, of how
// many there are, of how fast it grows, and of what waits to be written. It never keeps a
// request waiting, and where the file cannot be written nothing fails.
//
// Its files:
//   - log.go: the queue, the rate limit and the last write at the end ([Log.Record], [Log.Close])
//   - waiting.go: the memory of the queue: policies in force count once
//   - file.go: the file: append, rotation, a file that others move or truncate ([file.write])
//   - options.go: flags and their limits ([Options])
//   - counters.go: metrics, and the reasons of dropped decisions ([Counters])
package logfile
