// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fidelity_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// location is a path in an object: keys of maps and indexes of lists.
type location []any

func (l location) String() string {
	var b strings.Builder

	for _, e := range l {
		if i, ok := e.(int); ok {
			fmt.Fprintf(&b, "[%d]", i)
		} else {
			fmt.Fprintf(&b, "[%q]", e)
		}
	}

	return b.String()
}

func (l location) with(e any) location { return append(slices.Clone(l), e) }

// An edit is a single change of an object.
type edit struct {
	// What is done, such as change, remove or swap.
	what string
	at   location
	// value that is set there; nil removes.
	value any
}

func (e edit) String() string { return fmt.Sprintf("%s %s to %v", e.what, e.at, e.value) }

// on returns the object after the edit.
func (e edit) on(obj map[string]any) map[string]any {
	return asMap(put(runtime.DeepCopyJSON(obj), e.at, e.value))
}

// asMap is a value that is a map.
func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)

	return m
}

// asList is a value that is a list.
func asList(v any) []any {
	list, _ := v.([]any)

	return list
}

// asText is a value that is a string.
func asText(v any) string {
	text, _ := v.(string)

	return text
}

// put sets the value at a location, or removes what is there.
func put(v any, at location, value any) any {
	if len(at) == 0 {
		return value
	}

	switch key := at[0].(type) {
	case string:
		m := asMap(v)

		switch {
		case m == nil && value == nil:
			return v
		case m == nil: // The API server left it out.
			m = map[string]any{}
		}

		if len(at) == 1 && value == nil {
			delete(m, key)
		} else {
			m[key] = put(m[key], at[1:], value)
		}

		return m
	case int:
		list := asList(v)
		if len(at) == 1 && value == nil {
			return slices.Delete(list, key, key+1)
		}

		list[key] = put(list[key], at[1:], value)

		return list
	default:
		panic(fmt.Sprintf("an element of a path that is a %T", key))
	}
}

// get returns what is at a location, and whether anything is.
func get(v any, at location) (any, bool) {
	for _, e := range at {
		switch key := e.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				return nil, false
			}

			if v, ok = m[key]; !ok {
				return nil, false
			}
		case int:
			list, ok := v.([]any)
			if !ok || key >= len(list) {
				return nil, false
			}

			v = list[key]
		}
	}

	return v, true
}

// gated is an object without what is never gated.
func gated(obj map[string]any) map[string]any {
	out := maps.Clone(obj)
	for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(out, key)
	}

	return out
}

// leaves are the places of scalars, and of empty maps and lists, in order.
func leaves(v any, at location) []location {
	var out []location

	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, leaves(v[key], at.with(key))...)
		}
	case []any:
		for i, e := range v {
			out = append(out, leaves(e, at.with(i))...)
		}
	}

	if len(out) == 0 {
		return []location{at}
	}

	return out
}

// lists are the places of lists of two elements at least that differ.
func lists(v any, at location) []location {
	var out []location

	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, lists(v[key], at.with(key))...)
		}
	case []any:
		if len(v) > 1 && fmt.Sprint(v[0]) != fmt.Sprint(v[1]) {
			out = append(out, at)
		}

		for i, e := range v {
			out = append(out, lists(e, at.with(i))...)
		}
	}

	return out
}

// edits are all single changes of what is gated of an object, in a random order.
func edits(rng *rand.Rand, obj map[string]any) []edit {
	var out []edit

	for _, at := range leaves(gated(obj), nil) {
		if len(at) == 0 {
			continue
		}

		was, _ := get(obj, at)
		if v := another(at, was); v != nil {
			out = append(out, edit{"change", at, v})
		}

		out = append(out, edit{"remove", at, nil}, edit{"remove", at[:len(at)-1], nil})
	}

	for _, at := range lists(gated(obj), nil) {
		was, _ := get(obj, at)
		list := slices.Clone(asList(was))
		list[0], list[1] = list[1], list[0]
		out = append(out, edit{"swap", at, list})
	}

	out = slices.DeleteFunc(out, func(e edit) bool { return len(e.at) == 0 })
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })

	return out
}

// others are values that stand for each other where only some are valid.
var others = map[string]string{
	"TCP": "UDP", "UDP": "SCTP", "Always": "OnFailure", "Never": "OnFailure", "OnFailure": "Never", "IfNotPresent": "Always",
	"Retain": "Delete", "Delete": "Retain", "Recreate": "RollingUpdate", "OnDelete": "RollingUpdate", "RollingUpdate": "OnDelete",
	"ClusterFirst": "Default", "Default": "ClusterFirst", "ReadWriteOnce": "ReadOnlyMany", "ReadOnlyMany": "ReadWriteMany",
	"ClusterIP": "NodePort", "NodePort": "LoadBalancer", "LoadBalancer": "ClusterIP", "None": "ClientIP", "ClientIP": "None",
	"Prefix": "Exact", "Exact": "Prefix", "ImplementationSpecific": "Prefix", "Allow": "Replace", "Forbid": "Allow",
	"Immediate": "WaitForFirstConsumer", "WaitForFirstConsumer": "Immediate", "Filesystem": "Block", "Memory": "HugePages",
	"NoSchedule": "NoExecute", "Exists": "Equal", "Cluster": "Local", "Ingress": "Egress", "AlwaysAllow": "IfHealthyBudget",
	"ScheduleAnyway": "DoNotSchedule", "DoNotSchedule": "ScheduleAnyway", "RuntimeDefault": "Unconfined", "HTTP": "HTTPS",
	"PreemptLowerPriority": "Never", "Opaque": "example.org/other", "ServiceAccount": "User", "Ignore": "Fail", "fast": "faster",
	"hunter2": "hunter3", "@daily": "@hourly", "*/5 * * * *": "*/6 * * * *", "Europe/Berlin": "Europe/Paris",
}

// number is one with a unit, or without.
var number = regexp.MustCompile(`^(\d+)(\.\d+)?(m|Ki|Mi|Gi|G|M|%|)$`)

// another is a value that differs from one in meaning, and is valid more often
// than not; nil where there is none.
func another(at location, v any) any {
	switch v := v.(type) {
	case bool:
		return !v
	case int64:
		return v + 1
	case float64:
		return v + 1
	case string:
		return anotherText(at, v)
	default:
		return nil
	}
}

func anotherText(at location, v string) any {
	if o, ok := others[v]; ok {
		return o
	}

	if m := number.FindStringSubmatch(v); m != nil {
		n, err := strconv.Atoi(m[1])
		if err == nil {
			return strconv.Itoa(n+1) + m[2] + m[3]
		}
	}

	if at[0] == "data" || at[0] == "binaryData" {
		if raw, err := base64.StdEncoding.DecodeString(v); err == nil && v != "" {
			return base64.StdEncoding.EncodeToString(append(raw, '!'))
		}
	}

	return v + "x"
}
