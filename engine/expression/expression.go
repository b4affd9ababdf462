// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"sync"
	"time"
	_ "time/tzdata" // Conditions name time zones, and images have none.

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/lazy"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/kausality-io/kausality-crossplane/engine/mask"
)

// Variables of an expression.
const (
	VarObject          = "object"
	varOldObject       = "oldObject"
	varRequest         = "request"
	varNamespaceObject = "namespaceObject"
	VarNow             = "now"
	varParent          = "parent"
	varAuthorizer      = "authorizer"
	// varOwnCheck is the authorizer's check of the resource that the request is about. CEL
	// knows it as one name.
	varOwnCheck = varAuthorizer + ".requestResource"
)

// errNotBool is the cause when an expression gives something else than true or
// false.
var errNotBool = errors.New("it does not give true or false")

// Expression is a compiled CEL expression that gives true or false.
type Expression struct {
	text    string
	program cel.Program
	reads   Reading
}

// String returns the expression as it was written.
func (e *Expression) String() string { return e.text }

// Env returns the environment all expressions share, in which objects
// may hold anything. It takes milliseconds to make and never changes.
//
//nolint:gochecknoglobals // A constant that is costly to make.
var Env = sync.OnceValues(func() (*cel.Env, error) {
	return NewEnv(variables(cel.DynType, cel.DynType, cel.DynType, cel.DynType)...)
})

// PolicyEnv is that of policies, which besides may ask the cluster's authorizer.
//
//nolint:gochecknoglobals // A constant that is costly to make.
var PolicyEnv = sync.OnceValues(func() (*cel.Env, error) {
	return NewEnv(append(variables(cel.DynType, cel.DynType, cel.DynType, cel.DynType), asking()...)...)
})

// asking are the variables that ask the cluster's authorizer.
func asking() []cel.EnvOption {
	return []cel.EnvOption{cel.Variable(varAuthorizer, library.AuthorizerType), cel.Variable(varOwnCheck, library.ResourceCheckType)}
}

// variables are those of expressions about a change, with the given types.
func variables(object, request, namespace, parent *cel.Type) []cel.EnvOption {
	return []cel.EnvOption{
		cel.Variable(VarObject, object),
		cel.Variable(varOldObject, object),
		cel.Variable(varRequest, request),
		cel.Variable(varNamespaceObject, namespace),
		cel.Variable(VarNow, cel.TimestampType),
		cel.Variable(varParent, parent),
	}
}

// rolesEnv has what expressions know besides objects.
//
//nolint:gochecknoglobals // A constant that is costly to make.
var rolesEnv = sync.OnceValues(func() (*cel.Env, error) { return NewEnv(asking()...) })

// TypedEnv is an environment that knows all that an expression of any object may know. The
// types of objects and of variables are those of their names, from a provider on top of CEL's own.
func TypedEnv(typeOf func(name string) *cel.Type, provider func(types.Provider) types.Provider) (*cel.Env, error) {
	env, err := rolesEnv()
	if err != nil {
		return nil, err
	}

	env, err = env.Extend(append(
		variables(typeOf(VarObject), typeOf(varRequest), typeOf(varNamespaceObject), typeOf(varParent)),
		cel.Variable(VarParams, typeOf(VarParams)), cel.Variable(varVariables, typeOf(varVariables)),
		cel.CustomTypeProvider(provider(env.CELTypeProvider())))...)
	if err != nil {
		return nil, fmt.Errorf("cannot make the CEL environment of types: %w", err)
	}

	return env, nil
}

// NewEnv makes an environment: Kubernetes' CEL libraries and limits, our has(),
// and the given variables.
func NewEnv(variables ...cel.EnvOption) (*cel.Env, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())

	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        append(variables, cel.Macros(hasMacro())),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the CEL environment: %w", err)
	}

	return set.Env(environment.NewExpressions)
}

// hasMacro is CEL's has(), which besides fields takes map keys:
// has(object.metadata.annotations['jira']) is true when there are annotations
// and the key is among them.
func hasMacro() cel.Macro {
	return cel.GlobalMacro(operators.Has, 1,
		func(eh cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
			switch arg := args[0]; {
			case arg.Kind() == ast.SelectKind:
				s := arg.AsSelect()

				return eh.NewPresenceTest(s.Operand(), s.FieldName()), nil
			case arg.Kind() == ast.CallKind && arg.AsCall().FunctionName() == operators.Index:
				return hasKey(eh, arg.AsCall().Args()[0], arg.AsCall().Args()[1]), nil
			default:
				return nil, eh.NewError(arg.ID(), "has() takes a field, such as object.spec.x, or a map key, such as object.metadata.annotations['x']")
			}
		})
}

// hasKey expands to "key in operand", after a presence test where the operand
// is a field itself.
func hasKey(eh cel.MacroExprFactory, operand, key ast.Expr) ast.Expr {
	in := eh.NewCall(operators.In, key, operand)
	if operand.Kind() != ast.SelectKind {
		return in
	}

	s := operand.AsSelect()
	present := eh.NewPresenceTest(eh.Copy(s.Operand()), s.FieldName())

	return eh.NewCall(operators.LogicalAnd, present, in)
}

// Compile compiles an expression. The error is one line and says
// where in the text it is.
func Compile(text string) (*Expression, error) {
	env, err := Env()
	if err != nil {
		return nil, err
	}

	return CompileIn(env, text, nil)
}

// CompileIn compiles an expression in an environment, with what its variables read.
func CompileIn(env *cel.Env, text string, variables map[string]Reading) (*Expression, error) {
	tree, program, err := CompileTree(env, text)
	if err == nil {
		err = CheckResult(tree, RoleCondition)
	}

	if err != nil {
		return nil, err
	}

	return &Expression{text: text, program: program, reads: ReadingOf(tree, variables)}, nil
}

// CheckResult reports an expression that does not give what its role asks for.
func CheckResult(tree *cel.Ast, role Role) error {
	if err := role.Check(tree.OutputType()); err != nil {
		return fmt.Errorf("cannot compile CEL: %w", err)
	}

	return nil
}

// CompileTree compiles an expression of any type, with Kubernetes' limits.
func CompileTree(env *cel.Env, text string) (*cel.Ast, cel.Program, error) {
	tree, iss := env.Compile(text)
	if iss != nil && iss.Err() != nil {
		return nil, nil, fmt.Errorf("cannot compile CEL: %w", iss.Err())
	}

	program, err := env.Program(tree,
		cel.CostLimit(apiservercel.PerCallLimit),
		cel.InterruptCheckFrequency(apiservercel.CheckFrequency),
	)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot compile CEL: %w", err)
	}

	return tree, program, nil
}

// CostOf is what an evaluation cost, in CEL's units.
func CostOf(details *cel.EvalDetails) uint64 {
	if details == nil || details.ActualCost() == nil {
		return 0
	}

	return *details.ActualCost()
}

// plainEnv returns the environment of conditions that the API server can check
// by itself, before it asks a webhook: without our has(), the namespace, and
// the request, which is typed there.
//
//nolint:gochecknoglobals // A constant that is costly to make.
var plainEnv = sync.OnceValues(func() (*cel.Env, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())

	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable(VarObject, cel.DynType), cel.Variable(varOldObject, cel.DynType)},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the CEL environment: %w", err)
	}

	return set.Env(environment.NewExpressions)
})

// Plain reports whether the API server can evaluate an expression by itself, as a
// match condition of a webhook.
func Plain(text string) bool {
	env, err := plainEnv()
	if err != nil {
		return false
	}

	tree, iss := env.Compile(text)

	return (iss == nil || iss.Err() == nil) && tree.OutputType().IsExactType(types.BoolType)
}

// Input is what an expression sees: decoded JSON objects, nil where there is
// none.
type Input struct {
	// Object is the new object; nil on delete.
	Object map[string]any
	// OldObject is the old object; nil on create.
	OldObject map[string]any
	// Request describes the request, see docs/concepts.md. It is called when an
	// expression is evaluated; nil gives no description.
	Request func() map[string]any
	// Now is the time of the whole decision.
	Now time.Time
	// Parent of the object, as it is; nil for a root.
	Parent map[string]any
	// Asking is who asks the cluster's authorizer for what. It is called when an expression
	// asks; nil where nobody can.
	Asking func() Asking
	// Home is the namespace that the object belongs to; empty for none.
	Home string
	// Params finds parameters; nil where nobody can.
	Params Params
	// Param is the object that holds the parameters to evaluate with.
	Param map[string]any
	// NamespaceObject is the object's namespace; nil for cluster-scoped ones.
	NamespaceObject map[string]any
}

// Asking is what expressions ask the cluster's authorizer by.
type Asking struct {
	// Authorizer is the cluster's.
	Authorizer authorizer.UnconditionalAuthorizer
	// User whom it is asked about.
	User user.Info
	// Resource of the request.
	Resource library.Resource
}

// errAlone is the cause where an expression asks, and nobody can be asked.
const errAlone = "the cluster's authorizer is asked by the webhook alone"

// Subject is the new object, or the old one on delete.
func (in Input) Subject() map[string]any {
	if in.Object != nil {
		return in.Object
	}

	return in.OldObject
}

// All are all objects that an expression sees values of. What an authenticator knows of a user, and
// the options of a request, may hold credentials as well.
func (in Input) All() []map[string]any {
	out := []map[string]any{in.Object, in.OldObject, in.Parent, in.Param, in.NamespaceObject}
	if in.Request != nil {
		out = append(out, in.Request())
	}

	return out
}

// Activation resolves the names in an expression.
type Activation struct {
	Input *Input
	// variables of a policy; nil where there are none.
	variables *lazy.MapValue
	// anew has them evaluated anew for another input; nil where there are none.
	anew func(*Input) *Activation
}

// WithoutApplied is the activation by objects without what kubectl stores of what was
// applied: that hides nothing, and may be shown as far as the rest may. It is the same one
// where there is nothing of that.
func (a *Activation) WithoutApplied() *Activation {
	in, found := *a.Input, false

	for _, at := range []*map[string]any{&in.Object, &in.OldObject, &in.Parent, &in.Param, &in.NamespaceObject} {
		object, ok := mask.WithoutApplied(*at)
		*at, found = object, found || ok
	}

	switch {
	case !found:
		return a
	case a.anew != nil:
		return a.anew(&in)
	default:
		return &Activation{Input: &in}
	}
}

// ResolveName returns what a name stands for; null where there is nothing.
func (a *Activation) ResolveName(name string) (any, bool) {
	switch {
	case name == varVariables && a.variables != nil:
		return a.variables, true
	case name == VarNow:
		return types.Timestamp{Time: a.Input.Now}, true
	case name == varAuthorizer || name == varOwnCheck:
		return a.asking(name), true
	}

	var v map[string]any

	switch name {
	case VarObject:
		v = a.Input.Object
	case varOldObject:
		v = a.Input.OldObject
	case varNamespaceObject:
		v = a.Input.NamespaceObject
	case varParent:
		v = a.Input.Parent
	case VarParams:
		v = a.Input.Param
	case varRequest:
		if a.Input.Request != nil {
			v = a.Input.Request()
		}
	default:
		return nil, false
	}

	if v == nil {
		return types.NullValue, true
	}

	return v, true
}

// asking is the value of a variable that asks the cluster's authorizer.
func (a *Activation) asking(name string) ref.Val {
	if a.Input.Asking == nil {
		return types.NewErr(errAlone)
	}

	by := a.Input.Asking()
	if name == varAuthorizer {
		return library.NewAuthorizerVal(by.User, by.Authorizer)
	}

	return library.NewResourceAuthorizerVal(by.User, by.Authorizer, by.Resource)
}

// Parent is none.
func (*Activation) Parent() interpreter.Activation { return nil }

// Reads is what the expression reads, with its variables.
func (e *Expression) Reads() Reading { return e.reads }

// ReadsParent reports whether the expression reads the parent of the object.
func (e *Expression) ReadsParent() bool { return e.reads.Parent }

// Eval evaluates the expression. An error means that it was not evaluated to
// an end, be it for a missing field or its cost; it is then neither true nor
// false. The cost is in CEL's units, as Kubernetes counts them.
func (e *Expression) Eval(in Input) (result bool, cost uint64, err error) {
	return e.eval(&Activation{Input: &in})
}

func (e *Expression) eval(a *Activation) (result bool, cost uint64, err error) {
	val, details, err := e.program.Eval(a)
	cost = CostOf(details)

	if err != nil {
		return false, cost, fmt.Errorf("cannot evaluate CEL %q: %w", e.text, e.shown(a, err))
	}

	b, ok := val.Value().(bool)
	if !ok {
		return false, cost, fmt.Errorf("cannot evaluate CEL %q: %w but %s", e.text, errNotBool, val.Type().TypeName())
	}

	return b, cost, nil
}

// shown is what may be shown of an error. Nearly all objects have what kubectl stores of what
// was applied: an error that is the same without that quotes nothing of it.
func (e *Expression) shown(a *Activation, err error) error {
	if without := a.WithoutApplied(); without != a {
		if _, _, again := e.program.Eval(without); again != nil && again.Error() == err.Error() {
			return mask.Error(err, without.Input.All()...)
		}
	}

	return mask.Error(err, a.Input.All()...)
}
