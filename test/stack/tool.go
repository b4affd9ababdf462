// Copyright The Kausality Authors
// SPDX-License-Identifier: Apache-2.0
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package stack

// A tool is one binary of the stack that is not ours.
type tool struct {
	// name of the binary.
	name string

	// dir of its module, below modules/. That module's go.mod pins the version. Where a script builds the tool, it
	// is relative to the root of the repository.
	dir string

	// script in dir that builds the tool and its assets, from all that is in dir, into the directory it is given.
	// Nothing of the following is for such a tool.
	script string

	// module the main package is part of: its version is the tool's.
	module string

	// pkg is the path of the main package.
	pkg string

	// ldflags for the linker; $VERSION is the version of the module.
	ldflags string

	// substitutions are the changes to make to the sources.
	substitutions []substitution

	// assets to keep beside the binary: directory in the cache -> directory in the module.
	assets map[string]string
}

// The tools, by the names of their binaries.
const (
	etcd                      = "etcd"
	kubeAPIServer             = "kube-apiserver"
	kubeControllerManager     = "kube-controller-manager"
	kubectl                   = "kubectl"
	crossplane                = "crossplane"
	crossplaneBefore2         = "crossplane-1.20"
	functionPatchAndTransform = "function-patch-and-transform"
	functionAutoReady         = "function-auto-ready"
	providerKubernetes        = "provider-kubernetes"
	providerNop               = "provider-nop"
)

// Directories kept beside the binaries.
const (
	assetCRDs     = "crds"
	assetWebhooks = "webhookconfigurations"
)

// Environment variables our substitution in providers adds: where their webhook server listens.
const (
	envWebhookHost = "KAUSALITY_STACK_WEBHOOK_HOST"
	envWebhookPort = "KAUSALITY_STACK_WEBHOOK_PORT"
)

// kubernetesDir is the directory of the module of the newest Kubernetes. Others have their minor version at its end.
const kubernetesDir = "kubernetes"

// Without its version clients cannot parse what the API server says about itself.
const kubernetesLDFlags = "-X k8s.io/component-base/version.gitVersion=$VERSION"

// tools returns what every stack is built from, in the order it is built: the smallest first.
func tools() []tool {
	return []tool{
		{name: etcd, dir: "etcd", module: "go.etcd.io/etcd/server/v3", pkg: "go.etcd.io/etcd/server/v3"},
		kubernetesTool(kubeAPIServer),
		kubernetesTool(kubectl),
		kubernetesTool(kubeControllerManager),
		crossplaneTool(),
		functionTool(functionPatchAndTransform, "github.com/crossplane-contrib/function-patch-and-transform"),
		functionTool(functionAutoReady, "github.com/crossplane/function-auto-ready"),
		providerKubernetesTool(),
	}
}

func kubernetesTool(name string) tool {
	return tool{
		name:    name,
		dir:     kubernetesDir,
		module:  "k8s.io/kubernetes",
		pkg:     "k8s.io/kubernetes/cmd/" + name,
		ldflags: kubernetesLDFlags,
	}
}

func functionTool(name, module string) tool {
	return tool{name: name, dir: name, module: module, pkg: module}
}

// noMetrics turns off metrics of a program that has no flag for their port.
const noMetrics = "-X sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=0"

// Without its version Crossplane installs no package that says which one it needs.
const (
	crossplaneVersion        = "-X github.com/crossplane/crossplane-runtime/v2/pkg/version.version=$VERSION"
	crossplaneVersionBefore2 = "-X github.com/crossplane/crossplane/internal/version.version=$VERSION"
)

// crossplaneTool is Crossplane.
func crossplaneTool() tool {
	const module = "github.com/crossplane/crossplane/v2"
	return tool{
		name:          crossplane,
		dir:           crossplane,
		module:        module,
		pkg:           module + "/cmd/crossplane",
		ldflags:       noMetrics + " " + crossplaneVersion,
		substitutions: crossplaneListen(module),
		assets:        map[string]string{assetCRDs: "cluster/crds", assetWebhooks: "cluster/webhookconfigurations"},
	}
}

// crossplaneToolBefore2 is Crossplane 1.20, the last one before 2.0. Its init reads CustomResourceDefinitions
// from a directory that it has no flag for: it gets those of Crossplane 2.
func crossplaneToolBefore2() tool {
	const module = "github.com/crossplane/crossplane"
	initialize := func(old, replacement string) substitution {
		return substitution{module: module, file: "cmd/crossplane/core/init.go", old: old, new: replacement}
	}
	return tool{
		name:    crossplaneBefore2,
		dir:     crossplaneBefore2,
		module:  module,
		pkg:     module + "/cmd/crossplane",
		ldflags: noMetrics + " " + crossplaneVersionBefore2,
		substitutions: append(crossplaneListen(module),
			initialize("type initCommand struct {\n", "type initCommand struct {\n\tCRDsPath, WebhookConfigurationsPath string\n"),
			initialize(`NewCoreCRDs("/crds", s),`, `NewCoreCRDs(c.CRDsPath, s),`)),
		assets: map[string]string{assetCRDs: "cluster/crds", assetWebhooks: "cluster/webhookconfigurations"},
	}
}

// crossplaneListen has Crossplane serve metrics and health probe on 127.0.0.1: its flags take a port only.
// Its RBAC manager has none, and so no metrics.
func crossplaneListen(module string) []substitution {
	listen := func(port string) substitution {
		return substitution{
			module: module,
			file:   "cmd/crossplane/core/core.go",
			old:    `fmt.Sprintf(":%d", c.` + port + `)`,
			new:    `fmt.Sprintf("127.0.0.1:%d", c.` + port + `)`,
		}
	}
	return []substitution{listen("MetricsPort"), listen("HealthProbePort")}
}

// providerKubernetesTool is provider-kubernetes without credentials of Nebius: the Go module proxy does not serve the
// version of their SDK that it requires.
func providerKubernetesTool() tool {
	t := providerTool(providerKubernetes)
	without := func(file, old, replacement string) {
		t.substitutions = append(t.substitutions, substitution{
			module: t.module, file: "pkg/kube/client/nebius/" + file, old: old, new: replacement,
		})
	}
	without("nebius.go", "\t\"github.com/nebius/gosdk\"\n\t\"github.com/nebius/gosdk/auth\"\n", "")
	without("nebius.go", `	sdk, err := gosdk.New(ctx,
		gosdk.WithCredentials(
			gosdk.ServiceAccountReader(
				auth.NewPrivateKeyParser(privateKey, publicKeyID, serviceAccountID),
			),
		),
	)
	if err != nil {
		return nil, err
	}
	return sdk, nil
`, "\treturn nil, errors.New(\"built without credentials of Nebius\")\n")
	without("transport.go", "\t\"github.com/nebius/gosdk/auth\"\n", "")
	without("transport.go", "(auth.BearerToken, error)", "(struct{ Token string }, error)")
	return t
}

// providerTool is a provider without metrics, whose port is fixed, and with its webhook server, whose
// port is fixed too, where the environment says.
func providerTool(name string) tool {
	module := "github.com/crossplane-contrib/" + name
	return tool{
		name:    name,
		dir:     name,
		module:  module,
		pkg:     module + "/cmd/provider",
		ldflags: noMetrics,
		substitutions: []substitution{{
			module: "sigs.k8s.io/controller-runtime",
			file:   "pkg/webhook/server.go",
			old: `	if o.Port <= 0 {
		o.Port = DefaultPort
	}
`,
			new: `	if port, err := strconv.Atoi(os.Getenv("` + envWebhookPort + `")); o.Port <= 0 && err == nil {
		o.Port = port
	}
	if o.Host == "" {
		o.Host = os.Getenv("` + envWebhookHost + `")
	}
	if o.Port <= 0 {
		o.Port = DefaultPort
	}
`,
		}},
		assets: map[string]string{assetCRDs: "package/crds"},
	}
}
