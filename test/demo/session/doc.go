// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package session is what the demo tells, as text on a terminal and as a
// recording: a picture of its highlights (SVG) or all of it with its timing
// (asciinema). A test compares the picture with what the demo tells now.
package session
