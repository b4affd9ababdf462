// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// answer does as Crossplane does with what a function requires: it calls again
// until that stays the same. It returns the last response and how many
// resources travelled with the last call.
func answer(t *testing.T, req *fnv1.RunFunctionRequest, cluster []*fnv1.Resource) (rsp *fnv1.RunFunctionResponse, travelled int) {
	t.Helper()

	const rounds = 5 // As in Crossplane.

	req.RequiredResources = nil

	var last *fnv1.Requirements

	for range rounds {
		rsp = run(t, req)
		if proto.Equal(last, rsp.GetRequirements()) || fatal(rsp) {
			return rsp, travelled
		}

		last = rsp.GetRequirements()
		travelled = send(req, last, cluster)
	}

	t.Fatalf("what the function requires does not stay the same: %v", last)

	return nil, 0
}

// matches reports whether a selector is about a resource.
// fatal reports whether a response ends the pipeline: Crossplane sends nothing more then.
func fatal(rsp *fnv1.RunFunctionResponse) bool {
	return slices.ContainsFunc(rsp.GetResults(), func(r *fnv1.Result) bool { return r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL })
}

// send adds to a request what is required, of what there is in a cluster, and says how much
// that is.
func send(req *fnv1.RunFunctionRequest, required *fnv1.Requirements, cluster []*fnv1.Resource) int {
	req.RequiredResources = map[string]*fnv1.Resources{}
	travelled := 0

	for key, s := range required.GetResources() {
		found := &fnv1.Resources{}

		for _, r := range cluster {
			if matches(r, s) {
				found.Items = append(found.Items, r)
			}
		}

		req.RequiredResources[key] = found
		travelled += len(found.GetItems())
	}

	return travelled
}

func matches(r *fnv1.Resource, s *fnv1.ResourceSelector) bool {
	u := &unstructured.Unstructured{Object: r.GetResource().AsMap()}

	switch {
	case u.GetKind() != s.GetKind():
		return false
	case s.Namespace != nil && u.GetNamespace() != s.GetNamespace():
		return false
	case s.GetMatchName() != "":
		return u.GetName() == s.GetMatchName() && (s.Namespace != nil || u.GetNamespace() == "")
	default:
		return labels.SelectorFromSet(s.GetMatchLabels().GetLabels()).Matches(labels.Set(u.GetLabels()))
	}
}

func aPolicy(t *testing.T, name, kind, labelled string) *fnv1.Resource {
	t.Helper()

	return resourceOf(t, fmt.Sprintf(`
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: %s, labels: {%s}}
spec:
  match: {kind: %s, fields: [spec.forProvider.engine]}
  subjects: [{kind: ServiceAccount, name: crossplane, namespace: crossplane-system, mayInitiate: true}]
  allow: [{relation: External, mutations: [Update]}]`, name, labelled, kind))
}

func aWindow(t *testing.T, name, user, labelled string) *fnv1.Resource {
	t.Helper()

	return resourceOf(t, fmt.Sprintf(`
apiVersion: kausality.io/v1alpha1
kind: UpgradeAllowance
metadata: {name: %s, labels: {%s}}
spec:
  serviceAccount: "system:serviceaccount:%s"
  validFrom: "2025-12-31T00:00:00Z"
  validUntil: "2026-01-02T00:00:00Z"
  allow: [{kind: Object, mutations: [spec.forProvider.engine]}, {relation: External, mutations: [Update]}]`, name, labelled, user))
}

func TestOnlyPoliciesThatMatterTravel(t *testing.T) {
	unrelated := make([]*fnv1.Resource, 0, 2000)

	for i := range cap(unrelated) / 2 {
		unrelated = append(unrelated,
			aPolicy(t, fmt.Sprint("other-", i), "Bucket", "kind.kausality.io/Bucket: ''"),
			aWindow(t, fmt.Sprint("other-", i), "kube-system:deployment-controller", "kausality.io/service-account: kube-system.deployment-controller"))
	}

	cases := map[string]struct {
		reason, input string
		cluster       []*fnv1.Resource
		travelled     int
		engine        string
	}{
		"Policy":    {"A policy about a composed kind.", "", []*fnv1.Resource{aPolicy(t, "a", "Object", "kind.kausality.io/Object: ''")}, 1, "mysql"},
		"Kinds":     {"One about several kinds.", "", []*fnv1.Resource{aPolicy(t, "a", "Object", "kind.kausality.io/Bucket: '', kind.kausality.io/Object: ''")}, 1, "mysql"},
		"ParentToo": {"And about the XR's.", "", []*fnv1.Resource{aPolicy(t, "a", "XDatabase", "kind.kausality.io/XDatabase: ''")}, 1, "postgres"},
		"Window": {
			"A window, found by whom it is for.", "", []*fnv1.Resource{
				aPolicy(t, "a", "XDatabase", "kind.kausality.io/XDatabase: ''"),
				aWindow(t, "w", "crossplane-system:crossplane", "kausality.io/service-account: crossplane-system.crossplane"),
			}, 2, "mysql",
		},
		"OtherUser": {
			"Where Crossplane is somebody else, for that one.", "serviceAccount: 'system:serviceaccount:prod:xp'", []*fnv1.Resource{
				aPolicy(t, "a", "XDatabase", "kind.kausality.io/XDatabase: ''"),
				aWindow(t, "w", "crossplane-system:crossplane", "kausality.io/service-account: crossplane-system.crossplane"),
				aWindow(t, "x", "prod:xp", "kausality.io/service-account: prod.xp"),
			}, 2, "mysql",
		},
		"Selected": {
			"The step's selector counts beside the labels.", "policySelector: {team: a}", []*fnv1.Resource{
				aPolicy(t, "a", "XDatabase", "kind.kausality.io/XDatabase: '', team: a"), aPolicy(t, "b", "Object", "kind.kausality.io/Object: '', team: b"),
			}, 1, "postgres",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp, travelled := answer(t, call(t, steadyXR, observedObject, sized("small", "mysql"), tc.input), append(tc.cluster, unrelated...))

			if travelled != tc.travelled {
				t.Errorf("%s\n%d resources travelled, want %d", tc.reason, travelled, tc.travelled)
			}

			checkEngine(t, tc.reason, rsp, tc.engine)
		})
	}
}

func checkEngine(t *testing.T, reason string, rsp *fnv1.RunFunctionResponse, want string) {
	t.Helper()

	spec := rsp.GetDesired().GetResources()["database"].GetResource().GetFields()["spec"].GetStructValue()
	if got := spec.GetFields()["forProvider"].GetStructValue().GetFields()["engine"].GetStringValue(); got != want {
		t.Errorf("%s\nengine %q, want %q; %v", reason, got, want, rsp.GetConditions())
	}
}

func TestPoliciesAreFoundWhereNoManagerLabelsThem(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster []*fnv1.Resource
		input   string
		engine  string
	}{
		"Policy":   {[]*fnv1.Resource{aPolicy(t, "a", "Object", "")}, "", "mysql"},
		"Window":   {[]*fnv1.Resource{aWindow(t, "w", "crossplane-system:crossplane", "")}, "", "mysql"},
		"Selected": {[]*fnv1.Resource{aPolicy(t, "a", "Object", "team: b")}, "policySelector: {team: a}", "postgres"},
		"Nothing":  {nil, "", "postgres"},
	} {
		t.Run(name, func(t *testing.T) {
			rsp, _ := answer(t, call(t, steadyXR, observedObject, sized("small", "mysql"), tc.input), tc.cluster)
			checkEngine(t, name, rsp, tc.engine)
		})
	}
}

func TestACrossplaneThatIsTooOldIsReported(t *testing.T) {
	req := call(t, steadyXR, observedObject, sized("small", "mysql"), "")

	// It sends nothing it was asked for: nothing is allowed, nor used up.
	req.RequiredResources = nil
	if got := run(t, req).GetConditions()[0].GetMessage(); !strings.HasPrefix(got, "generation 12: in progress: nothing is allowed without the required AllowancePolicies") ||
		!strings.Contains(got, "Crossplane 1.15") {
		t.Errorf("without resources: %q", got)
	}

	// It keeps no conditions.
	req = call(t, steadyXR, observedObject, sized("small", "postgres"), "")
	req.Meta.Capabilities = nil

	rsp := run(t, req)
	if n := len(rsp.GetResults()); n != 1 || !strings.Contains(rsp.GetResults()[0].GetMessage(), "does not store the conditions of functions") {
		t.Errorf("without conditions: %v", rsp.GetResults())
	}

	// Or does, for it shows one.
	req = call(t, reported(rsp.GetConditions()...), observedObject, sized("small", "postgres"), "")
	req.Meta.Capabilities = nil

	if rsp := run(t, req); len(rsp.GetResults()) > 0 {
		t.Errorf("with conditions: %v", rsp.GetResults())
	}
}

// reported is the steady XR with what its conditions said before.
func reported(conditions ...*fnv1.Condition) string {
	var said strings.Builder

	for _, c := range conditions {
		status := map[fnv1.Status]string{fnv1.Status_STATUS_CONDITION_TRUE: "True", fnv1.Status_STATUS_CONDITION_FALSE: "False"}[c.GetStatus()]
		fmt.Fprintf(&said, `{type: %s, status: "%s", message: '%s'}, `, c.GetType(), status, strings.ReplaceAll(c.GetMessage(), "'", "''"))
	}

	return strings.Replace(steadyXR, "conditions: [", "conditions: ["+said.String(), 1)
}

func TestProblemsAreReportedOnceAndInOrder(t *testing.T) {
	broken := func(name string) *fnv1.Resource {
		return resourceOf(t, `{kind: AllowancePolicy, metadata: {name: `+name+`}, spec: {match: {kind: Object, fields: ["spec["]}, allow: []}}`)
	}
	ask := func(xr string, names ...string) *fnv1.RunFunctionResponse {
		req := call(t, xr, observedObject, sized("small", "postgres"), "")
		for _, name := range names {
			list := req.GetRequiredResources()["kausality.io/allowancepolicies"]
			list.Items = append(list.Items, broken(name))
		}

		return run(t, req)
	}

	first := ask(steadyXR, "b", "a")
	message := first.GetConditions()[0].GetMessage()

	if !strings.HasPrefix(message, `generation 12: settled, 2 problems: cannot use AllowancePolicy "a"`) || len(first.GetResults()) != 2 {
		t.Errorf("condition %q, results %v", message, first.GetResults())
	}

	if again := ask(reported(first.GetConditions()...), "a", "b"); len(again.GetResults()) > 0 || again.GetConditions()[0].GetMessage() != message {
		t.Errorf("the same again: condition %q, results %v", again.GetConditions()[0].GetMessage(), again.GetResults())
	}

	if corrected := ask(reported(first.GetConditions()...)); corrected.GetConditions()[0].GetMessage() != "generation 12: settled" {
		t.Errorf("corrected: %v", corrected.GetConditions())
	}
}

func TestAnAllowanceIsNotUsedUpWhileItsPolicyIsAway(t *testing.T) {
	xr := strings.Replace(steadyXR, "initiator: hans\n", "initiator: hans\n        policy: away\n", 1)

	got := run(t, call(t, xr, observedObject, sized("large", "postgres"), "")).GetConditions()[0].GetMessage()
	if want := "generation 12: in progress, 1 change held"; !strings.HasPrefix(got, want) {
		t.Errorf("condition %q, want %q", got, want)
	}
}

func TestAKindWithoutManagementPoliciesIsMadeWithoutThem(t *testing.T) {
	const (
		key    = "kausality.io/schema/kubernetes.crossplane.io/v1alpha2/Object"
		xr     = "{apiVersion: example.org/v1alpha1, kind: XDatabase, metadata: {name: db, generation: 1}}"
		with   = "{properties: {spec: {properties: {forProvider: {}, managementPolicies: {}}}}}"
		policy = "managementPolicies"
	)

	for name, tc := range map[string]struct {
		reason string
		schema string
		set    bool
	}{
		"With":    {"Nearly all kinds have them.", with, true},
		"Without": {"This one has not: the API server would refuse it.", strings.Replace(with, ", managementPolicies: {}", "", 1), false},
		"Unknown": {"Where Crossplane finds no schema, it is one of nearly all.", "{}", true},
	} {
		t.Run(name, func(t *testing.T) {
			req := call(t, xr, "", sized("small", "postgres"), "")
			req.Meta.Capabilities = append(req.Meta.Capabilities, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS)

			want := &fnv1.SchemaSelector{ApiVersion: "kubernetes.crossplane.io/v1alpha2", Kind: "Object"}
			if got := run(t, req).GetRequirements().GetSchemas(); len(got) != 1 || !proto.Equal(got[key], want) {
				t.Fatalf("required schemas: %v", got)
			}

			req.RequiredSchemas = map[string]*fnv1.Schema{key: {OpenapiV3: resourceOf(t, tc.schema).GetResource()}}

			made := &unstructured.Unstructured{Object: run(t, req).GetDesired().GetResources()["database"].GetResource().AsMap()}
			if _, set := resource.Value(made.Object, "spec", policy); set != tc.set {
				t.Errorf("%s\nspec: %v", tc.reason, made.Object["spec"])
			}

			if marked := resource.Annotation(made, "kausality.io/desired-policies") != ""; marked != tc.set {
				t.Errorf("%s\nannotations: %v", tc.reason, made.GetAnnotations())
			}
		})
	}

	// What is there is read itself, and an older Crossplane knows no schemas.
	for _, req := range []*fnv1.RunFunctionRequest{
		call(t, xr, observedObject, sized("small", "postgres"), ""), call(t, xr, "", sized("small", "postgres"), ""),
	} {
		if got := run(t, req).GetRequirements().GetSchemas(); len(got) > 0 {
			t.Errorf("required schemas: %v", got)
		}
	}
}

func TestAVersionWithoutManagementPoliciesIsHeldWhereAnotherHasThem(t *testing.T) {
	const (
		xr      = "{apiVersion: example.org/v1alpha1, kind: XDatabase, metadata: {name: db, generation: 1}}"
		none    = "{properties: {spec: {properties: {forProvider: {}}}}}"
		schema  = "kausality.io/schema/kubernetes.crossplane.io/v1alpha1/Object"
		asked   = "kausality.io/schema/kubernetes.crossplane.io/v1alpha2/Object"
		with    = "{properties: {spec: {properties: {forProvider: {}, managementPolicies: {}}}}}"
		missing = "its gate is spec.managementPolicies, which v1alpha1 does not have: compose it in v1alpha2"
	)

	older := func(text string) string {
		return strings.ReplaceAll(text, "crossplane.io/v1alpha2", "crossplane.io/v1alpha1")
	}

	for name, tc := range map[string]struct {
		reason, observed, other string
		mode                    string
		holds                   bool
	}{
		"New":       {reason: "It would be made without a gate.", other: with, holds: true},
		"There":     {reason: "It would be stored in the other version, and lose its policies.", observed: observedObject, other: with, holds: true},
		"NotServed": {reason: "Nobody can compose it in that one.", other: "{}"},
		"Audit":     {reason: "Nothing has a gate.", mode: "mode: Audit", other: with},
	} {
		t.Run(name, func(t *testing.T) {
			req := call(t, xr, tc.observed, older(sized("small", "postgres")), tc.mode)
			req.Meta.Capabilities = append(req.Meta.Capabilities, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS,
				fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES)
			req.RequiredSchemas = map[string]*fnv1.Schema{schema: {OpenapiV3: resourceOf(t, none).GetResource()}}

			if sel := run(t, req).GetRequirements().GetSchemas()[asked]; sel.GetApiVersion() != "kubernetes.crossplane.io/v1alpha2" {
				t.Fatalf("required: %v", sel)
			}

			req.RequiredSchemas[asked] = &fnv1.Schema{OpenapiV3: resourceOf(t, tc.other).GetResource()}
			rsp := run(t, req)

			if got := strings.Contains(told(t, rsp), missing); got != tc.holds {
				t.Errorf("%s\ncondition: %v", tc.reason, rsp.GetConditions()[0])
			}

			if ready := rsp.GetDesired().GetComposite().GetReady(); (ready == fnv1.Ready_READY_FALSE) != (tc.holds && tc.observed == "") {
				t.Errorf("%s\nthe XR is %s", tc.reason, ready)
			}

			got, made := rsp.GetDesired().GetResources()["database"]
			if api := got.GetResource().GetFields()["apiVersion"].GetStringValue(); tc.holds && (made != (tc.observed != "") ||
				made && !strings.Contains(tc.observed, api)) || !tc.holds && !made {
				t.Errorf("%s\nmade %v, in %s", tc.reason, made, api)
			}
		})
	}
}

func TestAResourceWithoutManagementPoliciesHasNoGate(t *testing.T) {
	without := strings.NewReplacer(
		"  managementPolicies: [Observe, LateInitialize]\n", "", `, "f:managementPolicies": {}`, "",
		"    kausality.io/gate: \"{v: 1, state: Closed, generation: 7, since: 2026-01-01T00:00:00Z}\"\n", "",
		"    kausality.io/desired-policies: '{\"v\":1,\"policies\":[\"*\"]}'\n", "").Replace(observedObject)

	// Nothing waits for a gate, and nothing is said of one.
	rsp := run(t, call(t, steadyXR, without, sized("small", "postgres"), ""))
	if got := rsp.GetConditions()[0].GetMessage(); got != "generation 12: settled" {
		t.Errorf("condition %q", got)
	}

	u := &unstructured.Unstructured{Object: rsp.GetDesired().GetResources()["database"].GetResource().AsMap()}
	if _, set := resource.Value(u.Object, "spec", "managementPolicies"); set || u.GetAnnotations()["kausality.io/desired-policies"] != "" {
		t.Errorf("desired: %v", u.Object)
	}

	// After mode Audit its record says that this is over, whoever owns that.
	const audit, hold = `{"v":1,"mode":"Audit"}`, `{"v":1}`

	audited := strings.Replace(without, "  annotations:\n", "  annotations:\n    kausality.io/desired-policies: '"+audit+"'\n", 1)
	for input, want := range map[string]string{"mode: Audit": audit, "": hold} {
		u := &unstructured.Unstructured{Object: run(t, call(t, steadyXR, audited, sized("small", "postgres"), input)).
			GetDesired().GetResources()["database"].GetResource().AsMap()}
		if got := u.GetAnnotations()["kausality.io/desired-policies"]; got != want {
			t.Errorf("with input %q: %q, want %q", input, got, want)
		}
	}

	// It is deleted as soon as that is allowed.
	xr := strings.Replace(steadyXR, "mutation: spec.forProvider.size", "mutation: delete", 1)
	if got := run(t, call(t, xr, without, "", "")).GetDesired().GetResources(); len(got) > 0 {
		t.Errorf("desired: %v", got)
	}
}

func TestPoliciesMayReadTheNamespace(t *testing.T) {
	xr := strings.Replace(steadyXR, "name: db\n", "name: db\n  namespace: prod\n", 1)
	observed := strings.Replace(observedObject, "name: db-obj\n", "name: db-obj\n  namespace: prod\n", 1)
	about := func(match string) *fnv1.Resource {
		p := aPolicy(t, "a", "Object", "kind.kausality.io/Object: ''")
		fields := p.GetResource().GetFields()["spec"].GetStructValue().GetFields()["match"].GetStructValue()

		maps.Copy(fields.GetFields(), resourceOf(t, match).GetResource().GetFields())

		return p
	}

	for name, tc := range map[string]struct {
		match, env, engine string
	}{
		"Selected": {"namespaceSelector: {matchLabels: {env: prod}}", "prod", "mysql"},
		"Other":    {"namespaceSelector: {matchLabels: {env: prod}}", "test", "postgres"},
		"CEL":      {`cel: ["namespaceObject.metadata.labels['env'] == 'prod'"]`, "prod", "mysql"},
		"NotMet":   {`cel: ["namespaceObject.metadata.labels['env'] == 'prod'"]`, "test", "postgres"},
		"Whole":    {`cel: ["namespaceObject.metadata.generation % 2 == 1"]`, "prod", "mysql"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := []*fnv1.Resource{about(tc.match), resourceOf(t, "{apiVersion: v1, kind: Namespace, metadata: {name: prod, generation: 3, labels: {env: "+tc.env+"}}}")}

			rsp, travelled := answer(t, call(t, xr, observed, sized("small", "mysql"), ""), cluster)
			checkEngine(t, name, rsp, tc.engine)

			if travelled != 2 {
				t.Errorf("%d resources travelled", travelled)
			}
		})
	}

	// Nobody reads namespaces without need.
	req := call(t, xr, observed, sized("small", "mysql"), "")
	answer(t, req, []*fnv1.Resource{aPolicy(t, "a", "Object", "kind.kausality.io/Object: ''")})

	if _, asked := req.GetRequiredResources()["kausality.io/namespace"]; asked {
		t.Error("asked for the namespace though no policy looks at it")
	}
}

// TestOnlyWhatWasRequiredCounts: the pipeline's step may have a requirement of the same name,
// which Crossplane keeps.
func TestOnlyWhatWasRequiredCounts(t *testing.T) {
	xr := strings.Replace(steadyXR, "name: db\n", "name: db\n  namespace: prod\n", 1)
	observed := strings.Replace(observedObject, "name: db-obj\n", "name: db-obj\n  namespace: prod\n", 1)

	forged := aPolicy(t, "forged", "Object", "")
	forged.GetResource().GetFields()["apiVersion"] = structpb.NewStringValue("mine.example.org/v1")

	selecting := aPolicy(t, "selecting", "Object", "")
	match := selecting.GetResource().GetFields()["spec"].GetStructValue().GetFields()["match"].GetStructValue()
	match.GetFields()["namespaceSelector"] = structpb.NewStructValue(resourceOf(t, "{matchLabels: {env: prod}}").GetResource())

	for name, tc := range map[string]struct {
		reason    string
		policy    *fnv1.Resource
		namespace string
		engine    string
	}{
		"Ours":           {"A policy is one.", aPolicy(t, "a", "Object", ""), "", "mysql"},
		"Forged":         {"What looks like one is none.", forged, "", "postgres"},
		"Own":            {"The namespace is the XR's.", selecting, "{apiVersion: v1, kind: Namespace, metadata: {name: prod, labels: {env: prod}}}", "mysql"},
		"OtherNamespace": {"Another one is not.", selecting, "{apiVersion: v1, kind: Namespace, metadata: {name: mine, labels: {env: prod}}}", "postgres"},
		"OtherKind":      {"Nor is another object of its name.", selecting, "{apiVersion: v1, kind: ConfigMap, metadata: {name: prod, labels: {env: prod}}}", "postgres"},
	} {
		t.Run(name, func(t *testing.T) {
			req := call(t, xr, observed, sized("small", "mysql"), "")
			req.RequiredResources["kausality.io/allowancepolicies"] = &fnv1.Resources{Items: []*fnv1.Resource{tc.policy}}

			if tc.namespace != "" {
				req.RequiredResources["kausality.io/namespace"] = &fnv1.Resources{Items: []*fnv1.Resource{resourceOf(t, tc.namespace)}}
			}

			checkEngine(t, tc.reason, run(t, req), tc.engine)
		})
	}
}
