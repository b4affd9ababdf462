// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest line that is read, in bytes. A decision holds an object up to four
// times, and the API server stores none of more than 1.5 MiB.
const maxLine = 32 * 1024 * 1024

var (
	errLong = fmt.Errorf("it is longer than %d bytes", maxLine)
	// errTruncated is the cause of a last line that does not end: who wrote it was killed,
	// or writes it now.
	errTruncated = errors.New("the last line has no end")
)

// lines reads a log line by line.
type lines struct {
	in *bufio.Reader
	// number of the line that was read last, from 1.
	number int
}

// newLines reads a log, which may be compressed by gzip.
func newLines(in io.Reader) (*lines, error) {
	const buffer = 256 * 1024

	out := &lines{in: bufio.NewReaderSize(in, buffer)}

	start, err := out.in.Peek(2)
	if err != nil || !bytes.Equal(start, []byte{0x1f, 0x8b}) {
		return out, nil //nolint:nilerr // What is that short is read as it is.
	}

	unzipped, err := gzip.NewReader(out.in)
	if err != nil {
		return nil, fmt.Errorf("cannot unzip: %w", err)
	}

	out.in = bufio.NewReaderSize(unzipped, buffer)

	return out, nil
}

// next returns the next line, without its end. The error is io.EOF after the last one,
// errLong of one that is left out, and errTruncated beside one that does not end.
func (l *lines) next() ([]byte, error) {
	var line []byte

	l.number++

	for {
		part, err := l.in.ReadSlice('\n')
		if len(line) <= maxLine {
			line = append(line, part...)
		}

		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case len(line) > maxLine:
			return nil, errLong
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, errTruncated
		case err != nil:
			return nil, err
		default:
			return line[:len(line)-1], nil
		}
	}
}
