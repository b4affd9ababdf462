// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/webhook"
)

// telling answers with all that it finds in a request, and its types.
func telling(_ context.Context, req admission.Request) admission.Response {
	object, isNew := objectIn(req.Object)
	old, isOld := objectIn(req.OldObject)
	req.Object, req.OldObject = runtime.RawExtension{}, runtime.RawExtension{}

	if !isNew || !isOld {
		return admission.Denied("not an object")
	}

	return admission.Denied(fmt.Sprintf("%s %#v %#v %s", req.Options.Raw, object, old, &req.AdmissionRequest))
}

// objectIn is an object of a request, be it decoded or not; false where it is none.
func objectIn(in runtime.RawExtension) (map[string]any, bool) {
	if u, ok := in.Object.(*unstructured.Unstructured); ok {
		return u.Object, true
	}

	if len(in.Raw) == 0 {
		return nil, true
	}

	var out map[string]any

	err := utiljson.Unmarshal(in.Raw, &out)

	return out, err == nil && out != nil
}

// checkAsTheFramework has an endpoint answer a request, and controller-runtime's server: both
// are to say the same.
func checkAsTheFramework(tb testing.TB, contentType, body string) string {
	tb.Helper()

	var answers [2]string

	for i, h := range []http.Handler{
		webhook.NewEndpoint(admission.HandlerFunc(telling)), &admission.Webhook{Handler: admission.HandlerFunc(telling)},
	} {
		req := httptest.NewRequestWithContext(tb.Context(), http.MethodPost, "/", io.NopCloser(strings.NewReader(body)))
		req.Header.Set("Content-Type", contentType)

		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		answers[i] = rec.Body.String()
	}

	if diff := cmp.Diff(answers[1], answers[0]); diff != "" {
		tb.Errorf("the endpoint differs from controller-runtime's server, -server, +endpoint:\n%s\n%s", diff, body)
	}

	return answers[0]
}

// reviewText is a review as the API server sends it, with more kinds of values than most.
const reviewText = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"7","kind":{"group":"example.org","version":"v1","kind":"Widget"},` +
	`"resource":{"group":"example.org","version":"v1","resource":"widgets"},"name":"a","namespace":"b","operation":"UPDATE","userInfo":{"username":"hans","groups":["a"]},` +
	`"object":{"kind":"Widget","spec":{"n":1,"f":1.0,"e":1e3,"big":12345678901234567890,"s":"ü<&>","l":[1,null,{}],"x":null}},"oldObject":null,` +
	`"dryRun":false,"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl"}}}`

func TestAnEndpointAnswersAsTheFrameworkDoes(t *testing.T) {
	const jsonType = "application/json"

	for name, tc := range map[string]struct {
		reason      string
		contentType string
		body        string
		want        string
	}{
		"Usual":       {reason: "What the API server sends is read as it was.", body: reviewText, want: "fieldManager"},
		"Empty":       {reason: "A review of nothing has no objects.", want: "(nil)"},
		"NotJSON":     {reason: "The error says where.", body: reviewText + "}", want: `"code":400`},
		"OtherType":   {reason: "JSON alone is read.", contentType: "text/plain", body: reviewText, want: "contentType"},
		"OtherKind":   {reason: "The kind is the one that was sent.", body: strings.Replace(reviewText, "AdmissionReview", "Other", 1), want: `"kind":"Other"`},
		"Beta":        {reason: "The former version is answered in it.", body: strings.Replace(reviewText, "k8s.io/v1", "k8s.io/v1beta1", 1), want: "v1beta1"},
		"NoRequest":   {reason: "A review without a request is about nothing.", body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, want: "allowed"},
		"ListForOne":  {reason: "A list is no object.", body: strings.Replace(reviewText, `"oldObject":null`, `"oldObject":[]`, 1), want: "not an object"},
		"TextForOne":  {reason: "A text is no object.", body: strings.Replace(reviewText, `"oldObject":null`, `"oldObject":"a"`, 1), want: "not an object"},
		"WrongCase":   {reason: "The names of fields are case-sensitive.", body: strings.Replace(reviewText, `"oldObject":null`, `"OldObject":[]`, 1), want: "fieldManager"},
		"NumberAsUID": {reason: "A field of another type is refused.", body: strings.Replace(reviewText, `"7"`, `7`, 1), want: `"code":400`},
		"TooLong":     {reason: "What is too long is refused.", body: reviewText + strings.Repeat(" ", 7*1024*1024), want: "too large"},
		"Longest":     {reason: "What is just not too long is read.", body: reviewText + strings.Repeat(" ", 7*1024*1024-len(reviewText)-1), want: "fieldManager"},
	} {
		t.Run(name, func(t *testing.T) {
			contentType := tc.contentType
			if contentType == "" {
				contentType = jsonType
			}

			if got := checkAsTheFramework(t, contentType, tc.body); !strings.Contains(got, tc.want) {
				t.Errorf("%s got %.300s, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestAnEndpointDecodesTheObjects checks that it does not leave all to controller-runtime's server.
func TestAnEndpointDecodesTheObjects(t *testing.T) {
	var got admission.Request

	e := webhook.NewEndpoint(admission.HandlerFunc(func(_ context.Context, req admission.Request) admission.Response {
		got = req

		return admission.Allowed("")
	}))

	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(reviewText))
	req.Header.Set("Content-Type", "application/json")
	e.ServeHTTP(httptest.NewRecorder(), req)

	if u, ok := got.Object.Object.(*unstructured.Unstructured); !ok || u.GetKind() != "Widget" || len(got.Object.Raw) > 0 {
		t.Errorf("the object is %#v", got.Object)
	}
}

// FuzzEndpoint has the request of a review be anything.
func FuzzEndpoint(f *testing.F) {
	f.Add(`"uid":"1","object":{"a":1}`)
	f.Add(`"object":null,"oldObject":{"a":[1.50,-0,1e400,"\ud800"]}`)
	f.Add(`"options":null,"userInfo":{"extra":{"a":["b"]}},"dryRun":true`)

	f.Fuzz(func(t *testing.T, request string) {
		body := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{` + request + `}}`
		if json.Valid([]byte(body)) {
			checkAsTheFramework(t, "application/json", body)
		}
	})
}
