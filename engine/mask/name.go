// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package mask

import (
	"regexp"
	"slices"
	"strings"
)

// credentials are what the names of fields end in that hold one, in small
// letters and without what separates words: dbPassword, DB_PASSWORD and
// db-password are alike. What ends otherwise, such as passwordSecretRef,
// secretName or tokenNamespace, says where one is.
//
//nolint:gochecknoglobals // A table of words, not of credentials.
var credentials = []string{
	"password", "passwords", "passwordhash", "passwd", "passphrase", "pwd",
	"secret", "secrets", "token", "tokens",
	"apikey", "accesskey", "secretkey", "privatekey", "signingkey", "encryptionkey", "accountkey", "sharedkey",
	"masterkey", "sessionkey", "tlskey",
	"credential", "credentials", "connectionstring", "kubeconfig", "dockerconfigjson", "dockercfg",
}

// separators are what stands between the words of a name.
//
//nolint:gochecknoglobals // A constant.
var separators = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")

// named reports whether a name is that of a credential.
func named(name string) bool {
	name = separators.Replace(strings.ToLower(name))

	return slices.ContainsFunc(credentials, func(end string) bool { return strings.HasSuffix(name, end) })
}

// login is a URL that carries a password.
var login = regexp.MustCompile(`://[^/\s:@]*:[^/\s@]+@`)

// reveals reports whether a text is a credential by itself, whatever its field is
// called: a private key in PEM, or a URL with a password.
func reveals(s string) bool {
	return strings.Contains(s, "PRIVATE KEY-----") || strings.Contains(s, "://") && login.MatchString(s)
}
