// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// Fields of a manifest, as provider-kubernetes' Object has it.
const (
	fieldAPIVersion = "spec.forProvider.manifest.apiVersion"
	fieldKind       = "spec.forProvider.manifest.kind"
	fieldName       = "spec.forProvider.manifest.metadata.name"
	fieldNamespace  = "spec.forProvider.manifest.metadata.namespace"
)

// A kind is what is known of a kind of managed resource.
type kind struct {
	// fields decide, besides the provider config, which external object one stands for.
	fields []field
	// named is true where the external name does, too.
	named bool
	// whole is true where the fields say it all, so that one that is not there says something, too.
	whole bool
}

// A field of a managed resource.
type field struct {
	text string
	path fieldpath.Path
}

// kindOf is what is known of a kind. One of a namespaced provider is as that of the cluster-scoped one. Of a kind without an
// entry, the external name counts, and fields by which most providers say where an external object is; of any, those of an
// installation.
func (more Fields) kindOf(gk schema.GroupKind) *kind {
	family := Family(gk)

	k, ok := kinds()[family]
	if !ok {
		k = kinds()[schema.GroupKind{}]
	}

	if fields := more[family]; len(fields) > 0 {
		out := *k
		out.fields = slices.Concat(k.fields, fields)

		return &out
	}

	return k
}

// kinds are those of which an external name says less than which external object is meant, or nothing.
//
// Sources, each apis and internal/controller: github.com/crossplane-contrib/provider-kubernetes v1.2.1 (Object),
// provider-helm (Release: its external name is that of the Helm release), provider-sql (grants, extensions and default
// privileges have no name; schemas and users one within a database; databases and roles need no entry).
//
//nolint:gochecknoglobals // A constant that is costly to make.
var kinds = sync.OnceValue(func() map[schema.GroupKind]*kind {
	const (
		postgresql, mysql, mssql = "postgresql.sql.crossplane.io", "mysql.sql.crossplane.io", "mssql.sql.crossplane.io"
		database, user, role     = "database", "user", "role"
	)

	return map[schema.GroupKind]*kind{
		{}: {named: true, fields: forProvider("region", "location", "zone", "project", "resourceGroupName")},
		{Group: "kubernetes.crossplane.io", Kind: "Object"}: {
			whole: true, fields: fieldsOf(fieldAPIVersion, fieldKind, fieldName, fieldNamespace),
		},
		{Group: "helm.crossplane.io", Kind: "Release"}: {named: true, fields: forProvider("namespace")},
		{Group: postgresql, Kind: "Grant"}: {
			fields: forProvider(role, "memberOf", database, "schema", "tables", "columns", "sequences", "routines",
				"foreignDataWrappers", "foreignServers"),
		},
		{Group: postgresql, Kind: "DefaultPrivileges"}: {fields: forProvider(role, "targetRole", "objectType", database, "schema")},
		{Group: postgresql, Kind: "Extension"}:         {fields: forProvider("extension", database)},
		{Group: postgresql, Kind: "Schema"}:            {named: true, fields: forProvider(database)},
		{Group: mysql, Kind: "Grant"}:                  {fields: forProvider(user, database, "table")},
		{Group: mssql, Kind: "Grant"}:                  {fields: forProvider(user, database, "schema")},
		{Group: mssql, Kind: "User"}:                   {named: true, fields: forProvider(database)},
	}
})

func forProvider(names ...string) []field {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = "spec.forProvider." + name
	}

	return fieldsOf(texts...)
}

func fieldsOf(texts ...string) []field {
	out := make([]field, len(texts))

	for i, text := range texts {
		path, err := fieldpath.Parse(text)
		if err != nil {
			panic(err) // A constant.
		}

		out[i] = field{text: text, path: path}
	}

	return out
}

// Family is the kind of managed resource that a kind is a namespaced or a cluster-scoped form of: the cluster-scoped one.
// Their groups differ by one label, m.
//
// Source: provider-kubernetes v1.2.1 apis/namespaced and apis/cluster; the groups of upjet's providers.
func Family(gk schema.GroupKind) schema.GroupKind {
	labels := strings.Split(gk.Group, ".")

	for i, label := range labels {
		if label == "m" && i > 0 {
			labels = append(labels[:i:i], labels[i+1:]...)

			break
		}
	}

	return schema.GroupKind{Group: strings.Join(labels, "."), Kind: gk.Kind}
}
