// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// stored is a version of an object, as etcd has it.
type stored struct {
	Value    []byte `json:"value"`
	Created  int64  `json:"create_revision,string"`
	Modified int64  `json:"mod_revision,string"`
}

// versions reads every version that an object has had since a revision, the
// first of them the one that it had then. They are in etcd, where no version is
// missed while nobody can watch; for five minutes, then they are compacted.
func versions(ctx context.Context, key string, since int64) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured

	revision, err := lastRevision(ctx, key, since)
	if err != nil {
		return nil, err
	}

	for {
		v, _, err := readAt(ctx, key, revision)
		if err != nil {
			return nil, err
		}

		if v == nil {
			return nil, fmt.Errorf("%s is not stored at revision %d: %w", key, revision, world.ErrOther)
		}

		u, err := decode(v.Value)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", key, err)
		}

		out = append(out, u)

		if v.Modified <= since || v.Modified == v.Created {
			slices.Reverse(out)

			return out, nil
		}

		revision = v.Modified - 1
	}
}

// lastRevision is the last since a revision at which there was an object, that
// is not made again once it is gone.
func lastRevision(ctx context.Context, key string, since int64) (int64, error) {
	v, now, err := readAt(ctx, key, 0)
	if err != nil || v != nil {
		return now, err
	}

	n := sort.Search(int(now-since), func(i int) bool {
		v, _, e := readAt(ctx, key, since+1+int64(i))
		err = errors.Join(err, e)

		return v == nil
	})

	return since + int64(n), err
}

// readAt reads an object at a revision, 0 for now, and says which revision is
// now. It is nil where there is no such object.
func readAt(ctx context.Context, key string, revision int64) (*stored, int64, error) {
	raw, err := json.Marshal(map[string]any{"key": base64.StdEncoding.EncodeToString([]byte(key)), "revision": revision})
	if err != nil {
		return nil, 0, fmt.Errorf("cannot ask etcd: %w", err)
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, running.EtcdURL()+"/v3/kv/range", bytes.NewReader(raw))
	if err != nil {
		return nil, 0, fmt.Errorf("cannot ask etcd: %w", err)
	}

	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot ask etcd: %w", err)
	}

	defer func() { _ = rsp.Body.Close() }()

	var answer struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
		KVs     []stored `json:"kvs"`
		Message string   `json:"message"`
	}

	if err := json.NewDecoder(rsp.Body).Decode(&answer); err != nil {
		return nil, 0, fmt.Errorf("cannot read the answer of etcd: %w", err)
	}

	switch {
	case rsp.StatusCode != http.StatusOK:
		return nil, 0, fmt.Errorf("etcd says of %s: %s: %w", key, answer.Message, world.ErrOther)
	case len(answer.KVs) == 0:
		return nil, answer.Header.Revision, nil
	default:
		return &answer.KVs[0], answer.Header.Revision, nil
	}
}

// decode reads an object as the API server stores it: custom resources as JSON,
// others as protobuf.
func decode(raw []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}

	if bytes.HasPrefix(raw, []byte("{")) {
		err := u.UnmarshalJSON(raw)

		return u, err
	}

	obj, _, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(raw, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot decode protobuf: %w", err)
	}

	u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj)

	return u, err
}
