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

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// probeTimeout bounds one probe.
const probeTimeout = 2 * time.Second

// A Probe says how to see that a process is ready. The zero value is always ready.
type Probe struct {
	// Address that takes TCP connections when it is.
	Address string `json:"address,omitempty"`

	// URL that answers 200 when it is.
	URL string `json:"url,omitempty"`

	// CAFile that signed the URL's certificate.
	CAFile string `json:"caFile,omitempty"`
}

// check returns why the process is not ready.
func (p Probe) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	switch {
	case p.URL != "":
		return p.get(ctx)
	case p.Address != "":
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.Address)
		if err != nil {
			return err
		}
		return conn.Close()
	default:
		return nil
	}
}

func (p Probe) get(ctx context.Context) error {
	// A transport of its own: no proxy, and no connection left over from a process since restarted.
	transport := &http.Transport{DisableKeepAlives: true}
	if p.CAFile != "" {
		ca, err := os.ReadFile(p.CAFile)
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(ca) {
			return errors.New("no certificate in " + p.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, http.NoBody)
	if err != nil {
		return err
	}
	rsp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	_ = rsp.Body.Close()
	if rsp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s says %s", p.URL, rsp.Status)
	}
	return nil
}
