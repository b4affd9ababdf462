// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Endpoint serves a handler of admission requests over HTTP. It decodes a review and its
// objects at once: controller-runtime's server decodes the review twice, leaving the
// objects as text, which a handler then has to decode. What is not a review of objects as
// the API server sends it, the endpoint leaves to that server, which says what is wrong.
type Endpoint struct {
	server admission.Webhook
}

// NewEndpoint makes an Endpoint. The handler finds the objects decoded in its requests, and
// not as text.
func NewEndpoint(handler admission.Handler) *Endpoint {
	return &Endpoint{server: admission.Webhook{Handler: handler, LogConstructor: func(base logr.Logger, _ *admission.Request) logr.Logger {
		return base // The handler's lines name the request themselves.
	}}}
}

// maxReview is the longest review that is decoded here, in bytes. controller-runtime
// refuses longer ones.
//
// Source: sigs.k8s.io/controller-runtime pkg/webhook/admission/http.go, maxRequestSize.
const maxReview = 7*1024*1024 - 1

// review is an admission review whose objects are decoded.
type review struct {
	metav1.TypeMeta `json:",inline"`

	Request *reviewed `json:"request"`
}

// reviewed is the request of a review.
type reviewed struct {
	admissionv1.AdmissionRequest `json:",inline"`

	// Object and OldObject stand before those of the AdmissionRequest, which are text.
	Object    any `json:"object"`
	OldObject any `json:"oldObject"`
}

// ServeHTTP answers one admission review.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody || r.Header.Get("Content-Type") != "application/json" {
		e.server.ServeHTTP(w, r)

		return
	}

	// 1. Read the review.
	text, err := readAtMost(r, maxReview)

	req, ok := parse(text)
	if err != nil || !ok {
		r.Body = body{Reader: io.MultiReader(bytes.NewReader(text), r.Body), Closer: r.Body}
		e.server.ServeHTTP(w, r)

		return
	}

	// 2. Have it answered.
	rsp := e.server.Handle(r.Context(), req)

	// 3. Write the answer.
	answer := admissionv1.AdmissionReview{Response: &rsp.AdmissionResponse}
	answer.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind(kindReview))

	if err := json.NewEncoder(w).Encode(answer); err != nil {
		log.FromContext(r.Context()).Error(err, "Cannot write the answer to an admission review", "uid", req.UID)
	}
}

// kindReview is the kind of admission reviews.
const kindReview = "AdmissionReview"

// body is what is read of a request's body, and the rest of it.
type body struct {
	io.Reader
	io.Closer
}

// readAtMost reads the body of a request, and one byte more than a limit at most.
func readAtMost(r *http.Request, limit int64) ([]byte, error) {
	var text bytes.Buffer

	text.Grow(int(min(max(r.ContentLength, 0), limit)) + bytes.MinRead)

	_, err := text.ReadFrom(io.LimitReader(r.Body, limit+1))

	return text.Bytes(), err
}

// parse decodes a review; false where it is not one of objects.
func parse(text []byte) (admission.Request, bool) {
	var in review

	if len(text) > maxReview || utiljson.Unmarshal(text, &in) != nil || in.Request == nil ||
		in.Kind != kindReview || in.APIVersion != admissionv1.SchemeGroupVersion.String() {
		return admission.Request{}, false
	}

	out := admission.Request{AdmissionRequest: in.Request.AdmissionRequest}

	var isNew, isOld bool

	out.Object, isNew = decoded(in.Request.Object)
	out.OldObject, isOld = decoded(in.Request.OldObject)

	return out, isNew && isOld
}

// decoded is a decoded object as part of a request; false where it is not an object, and
// not absent.
func decoded(v any) (runtime.RawExtension, bool) {
	if v == nil {
		return runtime.RawExtension{}, true
	}

	object, ok := v.(map[string]any)

	return runtime.RawExtension{Object: &unstructured.Unstructured{Object: object}}, ok
}
