// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage reads what CPU and memory a process takes. Only Linux tells: elsewhere all is 0.
package usage

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Known reports whether the system tells about processes as Linux does.
const Known = runtime.GOOS == "linux"

// tick is the unit of /proc/PID/stat: USER_HZ is 100 on every architecture of Linux that Go runs on.
//
// Source: proc_pid_stat(5), include/asm-generic/param.h of the kernel.
const tick = 10 * time.Millisecond

// Positions of utime and stime behind the name of the program in /proc/PID/stat, which is in
// parentheses and may contain anything.
const (
	statUser   = 11
	statSystem = 12
)

// CPU returns the CPU time that a process has taken by now.
func CPU(pid int) (time.Duration, error) {
	if !Known {
		return 0, nil
	}

	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}

	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])

	user, err := strconv.ParseInt(string(fields[statUser]), 10, 64)
	if err != nil {
		return 0, err
	}

	system, err := strconv.ParseInt(string(fields[statSystem]), 10, 64)

	return time.Duration(user+system) * tick, err
}

// Sizes of a process in memory.
const (
	Resident = "VmRSS"
	Peak     = "VmHWM"
)

// Memory returns a size of a process in MiB.
func Memory(pid int, size string) (float64, error) {
	if !Known {
		return 0, nil
	}

	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}

	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, size+":"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)

			return kib / 1024, err
		}
	}

	return 0, fmt.Errorf("cannot find %s of process %d", size, pid)
}
